"""Every default of cfg/task and cfg/train against the published values (C17 for the batch sizes)."""

import pytest

COMMON_PHYSX = {
    "num_threads": 4, "solver_type": 1, "use_gpu": False, "num_position_iterations": 4, "contact_offset": 0.02,
    "bounce_threshold_velocity": 0.2, "num_subscenes": 4,
}  # fmt: skip
COMMON_SIM = {"up_axis": "z", "use_gpu_pipeline": False, "gravity": [0.0, 0.0, -9.81]}

CARTPOLE = {
    "name": "Cartpole",
    "physics_engine": "physx",
    "reference_quirks": [],
    "env": {
        "numEnvs": 512, "envSpacing": 4.0, "episodeLength": 500, "resetDist": 3.0, "maxEffort": 400.0,
        "observationType": "full", "asymmetric_observations": False, "clipObservations": 5.0, "clipActions": 1.0,
        "asset": {"assetRoot": "", "assetFileName": "cartpole/cartpole.urdf"}, "enableCameraSensors": False,
    },
    "sim": {
        **COMMON_SIM, "dt": 0.0166, "substeps": 2,
        "physx": {
            **COMMON_PHYSX, "num_velocity_iterations": 0, "rest_offset": 0.001, "max_depenetration_velocity": 100.0,
            "default_buffer_size_multiplier": 2.0, "max_gpu_contact_pairs": 1048576, "contact_collection": 0,
        },
    },
    "task": {"randomize": False},
}  # fmt: skip

ANT = {
    "name": "Ant",
    "physics_engine": "physx",
    "reference_quirks": [],
    "env": {
        "numEnvs": 4096, "envSpacing": 5, "episodeLength": 1000, "clipActions": 1.0, "controlFrequencyInv": 1,
        "powerScale": 1.0, "aliveReward": 0.5, "headingWeight": 0.5, "upWeight": 0.1, "actionsCost": 0.005,
        "energyCost": 0.05, "jointsAtLimitCost": 0.1, "deathCost": -2.0, "terminationHeight": 0.31,
        "angularVelocityScale": 1.0, "dofVelocityScale": 0.2, "contactForceScale": 0.1,
        "plane": {"staticFriction": 1.0, "dynamicFriction": 1.0, "restitution": 0.0},
        "asset": {"assetRoot": "", "assetFileName": "ant/ant.xml"}, "enableCameraSensors": False,
    },
    "sim": {
        **COMMON_SIM, "dt": 0.0166, "substeps": 2,
        "physx": {
            **COMMON_PHYSX, "num_velocity_iterations": 0, "rest_offset": 0.0, "max_depenetration_velocity": 10.0,
            "default_buffer_size_multiplier": 5.0, "max_gpu_contact_pairs": 8388608, "contact_collection": 0,
        },
    },
    "task": {
        "randomize": False,
        "randomization_params": {
            "frequency": 600,
            "observations": {"range": [0, 0.002], "operation": "additive", "distribution": "gaussian"},
            "actions": {"range": [0.0, 0.02], "operation": "additive", "distribution": "gaussian"},
            "actor_params": {
                "ant": {
                    "color": True,
                    "rigid_body_properties": {
                        "mass": {"range": [0.5, 1.5], "operation": "scaling", "distribution": "uniform",
                                 "setup_only": True},
                    },
                    "dof_properties": {
                        "damping": {"range": [0.5, 1.5], "operation": "scaling", "distribution": "uniform"},
                        "stiffness": {"range": [0.5, 1.5], "operation": "scaling", "distribution": "uniform"},
                        "lower": {"range": [0, 0.01], "operation": "additive", "distribution": "gaussian"},
                        "upper": {"range": [0, 0.01], "operation": "additive", "distribution": "gaussian"},
                    },
                }
            },
        },
    },
}  # fmt: skip

LINEAR = {"schedule": "linear", "schedule_steps": 3000}
SCALED = {"range": [0.5, 1.5], "operation": "scaling", "distribution": "uniform"}


def scheduled_randomization(robot):
    """Humanoid and Anymal; the schedule of the masses is left out (Q17)."""
    return {
        "frequency": 600,
        "observations": {"range": [0, 0.002], "operation": "additive", "distribution": "gaussian"},
        "actions": {"range": [0.0, 0.02], "operation": "additive", "distribution": "gaussian"},
        "sim_params": {"gravity": {"range": [0, 0.4], "operation": "additive", "distribution": "gaussian", **LINEAR}},
        "actor_params": {
            robot: {
                "color": True,
                "rigid_body_properties": {"mass": {**SCALED, "setup_only": True}},
                "rigid_shape_properties": {
                    "friction": {"num_buckets": 500, "range": [0.7, 1.3], "operation": "scaling",
                                 "distribution": "uniform", **LINEAR},
                    "restitution": {"range": [0.0, 0.7], "operation": "scaling", "distribution": "uniform", **LINEAR},
                },
                "dof_properties": {
                    "damping": {**SCALED, **LINEAR},
                    "stiffness": {**SCALED, **LINEAR},
                    "lower": {"range": [0, 0.01], "operation": "additive", "distribution": "gaussian", **LINEAR},
                    "upper": {"range": [0, 0.01], "operation": "additive", "distribution": "gaussian", **LINEAR},
                },
            }
        },
    }  # fmt: skip


HUMANOID = {
    "name": "Humanoid",
    "physics_engine": "physx",
    "reference_quirks": [],
    "env": {
        "numEnvs": 4096, "envSpacing": 5, "episodeLength": 1000, "clipActions": 1.0, "controlFrequencyInv": 1,
        "powerScale": 1.0, "aliveReward": 2.0, "headingWeight": 0.5, "upWeight": 0.1, "actionsCost": 0.01,
        "energyCost": 0.05, "jointsAtLimitCost": 0.25, "deathCost": -1.0, "terminationHeight": 0.8,
        "angularVelocityScale": 0.25, "dofVelocityScale": 0.1, "contactForceScale": 0.01,
        "plane": {"staticFriction": 1.0, "dynamicFriction": 1.0, "restitution": 0.0},
        "asset": {"assetRoot": "", "assetFileName": "humanoid/humanoid.xml"}, "enableCameraSensors": False,
    },
    "sim": ANT["sim"],
    "task": {"randomize": False, "randomization_params": scheduled_randomization("humanoid")},
}  # fmt: skip

ANYMAL_ANGLES = {
    "LF_HAA": 0.03, "LH_HAA": 0.03, "RF_HAA": -0.03, "RH_HAA": -0.03, "LF_HFE": 0.4, "LH_HFE": -0.4, "RF_HFE": 0.4,
    "RH_HFE": -0.4, "LF_KFE": -0.8, "LH_KFE": 0.8, "RF_KFE": -0.8, "RH_KFE": 0.8,
}  # fmt: skip
ANYMAL_START = {
    "pos": [0.0, 0.0, 0.62], "rot": [0.0, 0.0, 0.0, 1.0], "vLinear": [0.0, 0.0, 0.0], "vAngular": [0.0, 0.0, 0.0],
}  # fmt: skip
ANYMAL_PHYSX = {
    **COMMON_PHYSX, "num_velocity_iterations": 1, "rest_offset": 0.0, "max_depenetration_velocity": 100.0,
    "default_buffer_size_multiplier": 5.0, "max_gpu_contact_pairs": 8388608, "contact_collection": 1,
}  # fmt: skip
ANYMAL_URDF = {"footName": "SHANK", "kneeName": "THIGH", "collapseFixedJoints": True, "fixBaseLink": False}

ANYMAL = {
    "name": "Anymal",
    "physics_engine": "physx",
    "reference_quirks": [],
    "env": {
        "numEnvs": 4096, "envSpacing": 4.0, "clipObservations": 5.0, "clipActions": 1.0, "controlFrequencyInv": 1,
        "plane": {"staticFriction": 1.0, "dynamicFriction": 1.0, "restitution": 0.0},
        "baseInitState": ANYMAL_START,
        "randomCommandVelocityRanges": {"linear_x": [-2.0, 2.0], "linear_y": [-1.0, 1.0], "yaw": [-1.0, 1.0]},
        "control": {"stiffness": 85.0, "damping": 2.0, "actionScale": 0.5},
        "defaultJointAngles": ANYMAL_ANGLES,
        "urdfAsset": {"file": "anymal_c/anymal.urdf", **ANYMAL_URDF},
        "asset": {"assetRoot": ""},
        "learn": {
            "episodeLength_s": 50, "linearVelocityXYRewardScale": 1.0, "angularVelocityZRewardScale": 0.5,
            "torqueRewardScale": -2.5e-5, "linearVelocityScale": 2.0, "angularVelocityScale": 0.25,
            "dofPositionScale": 1.0, "dofVelocityScale": 0.05,
        },
        "enableCameraSensors": False,
    },
    "sim": {**COMMON_SIM, "dt": 0.02, "substeps": 2, "physx": ANYMAL_PHYSX},
    "task": {"randomize": False, "randomization_params": scheduled_randomization("anymal")},
}  # fmt: skip

ANYMAL_TERRAIN = {
    "name": "AnymalTerrain",
    "physics_engine": "physx",
    "reference_quirks": [],
    "env": {
        "numEnvs": 4096, "envSpacing": 3.0,
        "terrain": {
            "terrainType": "trimesh", "staticFriction": 1.0, "dynamicFriction": 1.0, "restitution": 0.0,
            "curriculum": True, "maxInitMapLevel": 0, "mapLength": 8.0, "mapWidth": 8.0, "numLevels": 10,
            "numTerrains": 20, "terrainProportions": [0.1, 0.1, 0.35, 0.25, 0.2], "slopeTreshold": 0.5,
        },
        "baseInitState": ANYMAL_START,
        "randomCommandVelocityRanges": {"linear_x": [-1.0, 1.0], "linear_y": [-1.0, 1.0], "yaw": [-3.14, 3.14]},
        "control": {"stiffness": 80.0, "damping": 2.0, "actionScale": 0.5, "decimation": 4},
        "defaultJointAngles": ANYMAL_ANGLES,
        "urdfAsset": {"file": "anymal_c/anymal_minimal.urdf", **ANYMAL_URDF},
        "asset": {"assetRoot": ""},
        "learn": {
            "episodeLength_s": 20, "allowKneeContacts": True, "terminalReward": 0.0,
            "linearVelocityXYRewardScale": 1.0, "linearVelocityZRewardScale": -4.0,
            "angularVelocityXYRewardScale": -0.05, "angularVelocityZRewardScale": 0.5,
            "orientationRewardScale": 0.0, "torqueRewardScale": -2e-5, "jointAccRewardScale": -5e-4,
            "baseHeightRewardScale": 0.0, "feetAirTimeRewardScale": 1.0, "kneeCollisionRewardScale": -0.25,
            "feetStumbleRewardScale": 0.0, "actionRateRewardScale": -0.01, "hipRewardScale": 0.0,
            "feetAirTimeStep": 0.005,
            "linearVelocityScale": 2.0, "angularVelocityScale": 0.25, "dofPositionScale": 1.0,
            "dofVelocityScale": 0.05, "heightMeasurementScale": 5.0,
            "addNoise": True, "noiseLevel": 1.0, "dofPositionNoise": 0.01, "dofVelocityNoise": 1.5,
            "linearVelocityNoise": 0.1, "angularVelocityNoise": 0.2, "gravityNoise": 0.05,
            "heightMeasurementNoise": 0.06,
            "randomizeFriction": True, "frictionRange": [0.5, 1.25], "pushRobots": True, "pushInterval_s": 15,
        },
        "enableCameraSensors": False,
    },
    "sim": {**COMMON_SIM, "dt": 0.005, "substeps": 1, "physx": ANYMAL_PHYSX},
    "task": {"randomize": False},
}  # fmt: skip

PPO_COMMON = {
    "env_name": "rlgpu", "multi_gpu": False, "ppo": True, "normalize_input": True, "normalize_value": True,
    "normalize_advantage": True, "gamma": 0.99, "tau": 0.95, "lr_schedule": "adaptive", "kl_threshold": 0.008,
    "score_to_win": 20000, "e_clip": 0.2, "grad_norm": 1.0, "clip_value": True, "seq_len": 4, "value_bootstrap": True,
}  # fmt: skip
PPO = {
    "Cartpole": {
        "mixed_precision": False, "num_actors": 512, "reward_shaper": {"scale_value": 0.1}, "learning_rate": 3e-4,
        "max_epochs": 100, "save_best_after": 50, "save_frequency": 25, "entropy_coef": 0.0, "truncate_grads": True,
        "horizon_length": 16, "minibatch_size": 8192, "mini_epochs": 8, "critic_coef": 4, "bounds_loss_coef": 1e-4,
    },
    "Ant": {
        "mixed_precision": True, "num_actors": 4096, "reward_shaper": {"scale_value": 0.01}, "learning_rate": 3e-4,
        "schedule_type": "legacy", "max_epochs": 500, "save_best_after": 200, "save_frequency": 50,
        "entropy_coef": 0.0, "truncate_grads": False, "horizon_length": 16, "minibatch_size": 32768,
        "mini_epochs": 4, "critic_coef": 2, "bounds_loss_coef": 1e-4,
    },
    "Humanoid": {
        "mixed_precision": True, "num_actors": 4096, "reward_shaper": {"scale_value": 0.01}, "learning_rate": 5e-4,
        "max_epochs": 1000, "save_best_after": 200, "save_frequency": 100, "entropy_coef": 0.0,
        "truncate_grads": True, "horizon_length": 32, "minibatch_size": 32768, "mini_epochs": 5, "critic_coef": 4,
        "bounds_loss_coef": 1e-4,
    },
    "Anymal": {
        "mixed_precision": True, "num_actors": 4096, "reward_shaper": {"scale_value": 1.0}, "learning_rate": 3e-4,
        "max_epochs": 1000, "save_best_after": 200, "save_frequency": 50, "entropy_coef": 0.0, "truncate_grads": True,
        "horizon_length": 24, "minibatch_size": 32768, "mini_epochs": 5, "critic_coef": 2, "bounds_loss_coef": 1e-3,
    },
    "AnymalTerrain": {
        "mixed_precision": True, "num_actors": 4096, "reward_shaper": {"scale_value": 1.0}, "learning_rate": 3e-4,
        "max_epochs": 1500, "save_best_after": 100, "save_frequency": 50, "entropy_coef": 0.001,
        "truncate_grads": True, "horizon_length": 24, "minibatch_size": 16384, "mini_epochs": 5, "critic_coef": 2,
        "bounds_loss_coef": 0.0, "clip_actions": False,
    },
}  # fmt: skip
UNITS = {
    "Cartpole": [32, 32], "Ant": [256, 128, 64], "Humanoid": [400, 200, 100], "Anymal": [256, 128, 64],
    "AnymalTerrain": [512, 256, 128],
}  # fmt: skip
SEPARATE = {"Cartpole": False, "Ant": False, "Humanoid": False, "Anymal": False, "AnymalTerrain": True}
BATCH = {
    "Cartpole": (8192, 1, 819_200), "Ant": (65536, 2, 32_768_000), "Humanoid": (131072, 4, 131_072_000),
    "Anymal": (98304, 3, 98_304_000), "AnymalTerrain": (98304, 6, 147_456_000),
}  # fmt: skip


@pytest.mark.parametrize("expected", [CARTPOLE, ANT, HUMANOID, ANYMAL, ANYMAL_TERRAIN], ids=lambda e: e["name"])
def test_task_defaults(load_cfg, expected):
    assert load_cfg("task", expected["name"]) == expected


@pytest.mark.parametrize("name", list(PPO))
def test_training_defaults(load_cfg, name):
    config = load_cfg("train", f"{name}PPO")["params"]["config"]
    assert config == {"name": name, "full_experiment_name": name, **PPO_COMMON, **PPO[name]}


@pytest.mark.parametrize("name", list(PPO))
def test_network_defaults(load_cfg, name):
    params = load_cfg("train", f"{name}PPO")["params"]
    assert params["seed"] == 42
    assert params["algo"] == {"name": "a2c_continuous"}
    assert params["model"] == {"name": "continuous_a2c_logstd"}
    assert params["load_checkpoint"] is False
    assert params["load_path"] == ""
    assert params["network"] == {
        "name": "actor_critic",
        "separate": SEPARATE[name],
        "space": {
            "continuous": {
                "mu_activation": "None", "sigma_activation": "None", "mu_init": {"name": "default"},
                "sigma_init": {"name": "const_initializer", "val": 0}, "fixed_sigma": True,
            }
        },
        "mlp": {
            "units": UNITS[name], "activation": "elu", "d2rl": False, "initializer": {"name": "default"},
            "regularizer": {"name": "None"},
        },
    }  # fmt: skip


def test_recurrent_policy_for_terrain(load_cfg):
    plain, recurrent = (load_cfg("train", f"AnymalTerrainPPO{suffix}")["params"] for suffix in ("", "_LSTM"))
    assert recurrent["network"]["mlp"]["units"] == [512]
    assert recurrent["network"]["separate"] is True
    assert recurrent["network"].pop("rnn") == {
        "name": "lstm", "units": 256, "layers": 1, "before_mlp": False, "concat_input": True, "layer_norm": False,
    }  # fmt: skip
    assert recurrent["config"].pop("max_epochs") == 750
    del plain["config"]["max_epochs"]
    plain["network"]["mlp"]["units"] = [512]
    assert recurrent == plain


@pytest.mark.parametrize("name", list(BATCH))
def test_C17_batch_sizes(load_cfg, name):
    config = load_cfg("train", f"{name}PPO")["params"]["config"]
    batch = config["num_actors"] * config["horizon_length"]
    assert (batch, batch // config["minibatch_size"], batch * config["max_epochs"]) == BATCH[name]
    assert batch % config["minibatch_size"] == 0


def test_root_keys_reach_the_task_and_training(load_cfg):
    root = {"num_envs": 64, "pipeline": "gpu", "sim_device": "cuda:0", "num_threads": 2, "solver_type": 0,
            "num_subscenes": 1, "max_iterations": 7, "experiment": "mine",
            "checkpoint": "a.pth", "seed": 5}  # fmt: skip
    for name in PPO:
        task = load_cfg("task", name, **root)
        assert task["env"]["numEnvs"] == 64
        assert task["sim"]["use_gpu_pipeline"] is True
        physx = task["sim"]["physx"]
        assert (physx["use_gpu"], physx["num_threads"], physx["solver_type"], physx["num_subscenes"]) == (True, 2, 0, 1)
        params = load_cfg("train", f"{name}PPO", **root)["params"]
        assert (params["seed"], params["load_checkpoint"], params["load_path"]) == (5, True, "a.pth")
        config = params["config"]
        assert (config["name"], config["max_epochs"], config["num_actors"]) == ("mine", 7, 64)
