"""Every default of the hand tasks' configs against the published values."""

import copy

import pytest

SHADOW_ENV = {
    "numEnvs": 16384, "envSpacing": 0.75, "episodeLength": 600, "resetTime": 0.0, "aggregateMode": 1,
    "clipObservations": 5.0, "clipActions": 1.0, "controlFrequencyInv": 1, "useRelativeControl": False,
    "dofSpeedScale": 20.0, "actionsMovingAverage": 1.0, "resetPositionNoise": 0.01, "resetDofPosRandomInterval": 0.2,
    "resetDofVelRandomInterval": 0.0, "forceScale": 0.0, "forceProbRange": [0.001, 0.1], "forceDecay": 0.99,
    "forceDecayInterval": 0.08, "distRewardScale": -10.0, "rotRewardScale": 1.0, "rotEps": 0.1,
    "actionPenaltyScale": -0.0002, "reachGoalBonus": 250, "fallDistance": 0.24, "fallPenalty": 0.0,
    "objectType": "block", "observationType": "full_state", "asymmetric_observations": False,
    "successTolerance": 0.1, "maxConsecutiveSuccesses": 0, "averFactor": 0.1, "stiffnessScale": 1.0,
    "forceLimitScale": 1.0, "startPositionNoise": 0.01, "startRotationNoise": 0.0, "resetRotationNoise": 0.0,
    "asset": {
        "assetRoot": "", "assetFileName": "shadow_hand/shadow_hand.xml", "assetFileNameBlock": "objects/block.urdf",
        "assetFileNameEgg": "objects/egg.xml", "assetFileNamePen": "objects/pen.xml",
    },
    "enableCameraSensors": False,
}  # fmt: skip
SIM = {
    "dt": 0.01667, "substeps": 2, "up_axis": "z", "use_gpu_pipeline": False, "gravity": [0.0, 0.0, -9.81],
    "physx": {
        "num_threads": 4, "solver_type": 1, "use_gpu": False, "num_position_iterations": 8,
        "num_velocity_iterations": 0, "contact_offset": 0.002, "rest_offset": 0.0, "bounce_threshold_velocity": 0.2,
        "max_depenetration_velocity": 1000.0, "default_buffer_size_multiplier": 5.0,
        "max_gpu_contact_pairs": 8388608, "num_subscenes": 4, "contact_collection": 0,
    },
}  # fmt: skip


def scaled(low, high, distribution="uniform", **more):
    return {"range": [low, high], "operation": "scaling", "distribution": distribution, **more}


def added(spread, **more):
    return {"range": [0, spread], "operation": "additive", "distribution": "gaussian", **more}


FRICTION = {"friction": scaled(0.7, 1.3, num_buckets=250)}
RANDOMISATION = {
    "frequency": 720,
    "observations": added(0.002, range_correlated=[0, 0.001]),
    "actions": added(0.05, range_correlated=[0, 0.015]),
    "sim_params": {"gravity": added(0.4)},
    "actor_params": {
        "hand": {
            "color": True,
            "tendon_properties": {
                "damping": scaled(0.3, 3.0, "loguniform"), "stiffness": scaled(0.75, 1.5, "loguniform"),
            },
            "dof_properties": {
                "damping": scaled(0.3, 3.0, "loguniform"), "stiffness": scaled(0.75, 1.5, "loguniform"),
                "lower": added(0.01), "upper": added(0.01),
            },
            "rigid_body_properties": {"mass": scaled(0.5, 1.5, setup_only=True)},
            "rigid_shape_properties": FRICTION,
        },
        "object": {
            "scale": scaled(0.95, 1.05, setup_only=True),
            "rigid_body_properties": {"mass": scaled(0.5, 1.5, setup_only=True)},
            "rigid_shape_properties": FRICTION,
        },
    },
}  # fmt: skip


def task(name, env, randomize=False, params=RANDOMISATION):
    section = {"randomize": randomize, "randomization_params": params} if params else {"randomize": randomize}
    return {"name": name, "physics_engine": "physx", "reference_quirks": [], "env": env, "sim": SIM, "task": section}


OPENAI_ENV = {
    **SHADOW_ENV, "episodeLength": 160, "resetTime": 8.0, "controlFrequencyInv": 3, "actionsMovingAverage": 0.3,
    "observationType": "openai", "asymmetric_observations": True, "successTolerance": 0.4,
    "maxConsecutiveSuccesses": 50, "fallPenalty": -50.0, "forceScale": 1.0,
}  # fmt: skip
ALLEGRO_ENV = {
    **SHADOW_ENV, "controlFrequencyInv": 2,
    "asset": {
        **SHADOW_ENV["asset"], "assetFileName": "allegro_hand/allegro_hand.urdf",
        "assetFileNameBlock": "objects/block_allegro.urdf",
    },
}  # fmt: skip
TASKS = {
    "ShadowHand": task("ShadowHand", SHADOW_ENV),
    "ShadowHandOpenAI_FF": task("ShadowHandOpenAI_FF", OPENAI_ENV, randomize=True),
    "ShadowHandOpenAI_LSTM": task("ShadowHandOpenAI_LSTM", {**OPENAI_ENV, "numEnvs": 8192}, randomize=True),
    "AllegroHand": task("AllegroHand", ALLEGRO_ENV, params=None),
    "AllegroHandLSTM": task("AllegroHandLSTM", {**ALLEGRO_ENV, "observationType": "full_no_vel"}, params=None),
}

COMMON = {
    "env_name": "rlgpu", "multi_gpu": False, "ppo": True, "mixed_precision": False, "normalize_input": True,
    "normalize_value": True, "normalize_advantage": True, "tau": 0.95, "lr_schedule": "adaptive",
    "schedule_type": "standard", "kl_threshold": 0.016, "score_to_win": 100000, "grad_norm": 1.0, "entropy_coef": 0.0,
    "truncate_grads": True, "e_clip": 0.2, "critic_coef": 4, "seq_len": 4, "bounds_loss_coef": 0.0001,
    "reward_shaper": {"scale_value": 0.01},
}  # fmt: skip


def ppo(gamma, rate, horizon, minibatch, epochs, last, best, every, actors=16384, bootstrap=True, clip=True):
    return {
        "gamma": gamma, "learning_rate": rate, "horizon_length": horizon, "minibatch_size": minibatch,
        "mini_epochs": epochs, "max_epochs": last, "save_best_after": best, "save_frequency": every,
        "num_actors": actors, "value_bootstrap": bootstrap, "clip_value": clip,
    }  # fmt: skip


TRAINING = {
    "ShadowHandPPO": ppo(0.99, 5e-4, 8, 32768, 5, 5000, 100, 200),
    "ShadowHandPPOLSTM": ppo(0.99, 5e-4, 32, 16384, 4, -1, 500, 100, bootstrap=False, clip=False),
    "ShadowHandOpenAI_FFPPO": ppo(0.99, 5e-4, 8, 16384, 8, 10000, 500, 200, bootstrap=False),
    "ShadowHandOpenAI_LSTMPPO": ppo(0.998, 1e-4, 16, 16384, 4, 10000, 500, 500, actors=8192, bootstrap=False),
    "AllegroHandPPO": ppo(0.99, 5e-4, 8, 32768, 5, 5000, 500, 200),
    "AllegroHandLSTMPPO": ppo(0.99, 5e-4, 8, 32768, 2, 5000, 500, 200),
}
MINIBATCHES = {
    "ShadowHandPPO": 4, "ShadowHandPPOLSTM": 32, "ShadowHandOpenAI_FFPPO": 8, "ShadowHandOpenAI_LSTMPPO": 8,
    "AllegroHandPPO": 4, "AllegroHandLSTMPPO": 4,
}  # fmt: skip
LAYERS = {
    "ShadowHandPPO": ([512, 512, 256, 128], "elu", None),
    "ShadowHandPPOLSTM": ([512, 512, 256], "elu", {"units": 256, "before_mlp": False, "concat_input": True}),
    "ShadowHandOpenAI_FFPPO": ([400, 400, 200, 100], "elu", None),
    "ShadowHandOpenAI_LSTMPPO": ([512], "relu", {"units": 1024, "before_mlp": True}),
    "AllegroHandPPO": ([512, 256, 128], "elu", None),
    "AllegroHandLSTMPPO": ([512, 256, 128], "elu", {"units": 512, "before_mlp": True}),
}
CENTRAL = {
    "ShadowHandOpenAI_FFPPO": (16384, 8, 5e-4, [512, 512, 256, 128], "elu", None),
    "ShadowHandOpenAI_LSTMPPO": (32768, 4, 1e-4, [512], "relu", {"units": 1024, "before_mlp": True}),
}


def mlp(units, activation):
    return {
        "units": units, "activation": activation, "d2rl": False, "initializer": {"name": "default"},
        "regularizer": {"name": "None"},
    }  # fmt: skip


def with_rnn(network, rnn):
    return {**network, "rnn": {"name": "lstm", "layers": 1, "layer_norm": True, **rnn}} if rnn else network


@pytest.mark.parametrize("name", list(TASKS))
def test_task_defaults(load_cfg, name):
    assert load_cfg("task", name) == TASKS[name]


@pytest.mark.parametrize("name", list(TRAINING))
def test_training_defaults(load_cfg, name):
    config = copy.deepcopy(load_cfg("train", name)["params"]["config"])
    central = config.pop("central_value_config", None)
    run = name.partition("PPO")[0]
    assert config == {"name": run, "full_experiment_name": run, **COMMON, **TRAINING[name]}
    assert config["num_actors"] * config["horizon_length"] == MINIBATCHES[name] * config["minibatch_size"]
    if name not in CENTRAL:
        assert central is None
        return
    minibatch, epochs, rate, units, activation, rnn = CENTRAL[name]
    network = {"name": "actor_critic", "central_value": True, "mlp": mlp(units, activation)}
    assert central == {
        "minibatch_size": minibatch, "mini_epochs": epochs, "learning_rate": rate, "lr_schedule": "constant",
        "clip_value": True, "normalize_input": True, "truncate_grads": True, "network": with_rnn(network, rnn),
    }  # fmt: skip


@pytest.mark.parametrize("name", list(LAYERS))
def test_network_defaults(load_cfg, name):
    network = load_cfg("train", name)["params"]["network"]
    space = network.pop("space")["continuous"]
    assert (space["fixed_sigma"], space["sigma_init"]) == (True, {"name": "const_initializer", "val": 0})
    units, activation, rnn = LAYERS[name]
    assert network == with_rnn({"name": "actor_critic", "separate": False, "mlp": mlp(units, activation)}, rnn)
