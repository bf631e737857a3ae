"""export.py: a checkpoint of rl-games becomes one of ours that acts and values the same."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf

from gymscale.scripts import export, play, rl_games_checkpoint
from gymscale.scripts.config import UsageError
from ppo.agent import Agent
from ppo.config import TrainConfig

sys.path.insert(0, str(Path(__file__).parent))  # `import rl_games_twin` whatever pytest's import mode is
import rl_games_twin as twin  # noqa: E402

NUM_OBS, NUM_STATES, NUM_ACTIONS, NUM_ENVS, STEPS = 7, 5, 3, 6, 9
UNITS = [16, 12]
FLAGS = ["--config-dir", str(Path(__file__).parent / "cfg")]


def rnn(
    name: str, before: bool, concat_input: bool = False, concat_output: bool = False, **more: Any
) -> dict[str, Any]:
    settings = {"name": name, "units": 10, "layers": 1, "before_mlp": before, "layer_norm": False}
    return {**settings, "concat_input": concat_input, "concat_output": concat_output, **more}


NETWORKS = {
    "shared": (False, {}),
    "separate": (True, {}),
    "lstm_after": (False, rnn("lstm", False, concat_input=True, layer_norm=True)),
    "lstm_after_separate": (True, rnn("lstm", False, concat_output=True, layer_norm=True)),
    "lstm_before_separate": (True, rnn("lstm", True, layers=2)),
    "gru_before": (False, rnn("gru", True, concat_output=True)),
}


def our_params(separate: bool, recurrent: dict[str, Any], central: bool = False) -> dict[str, Any]:
    network = {"name": "actor_critic", "separate": separate, "mlp": {"units": UNITS, "activation": "elu"}}
    if recurrent:
        network["rnn"] = recurrent
    config: dict[str, Any] = {"learning_rate": 1e-3, "horizon_length": 8, "minibatch_size": 16, "mini_epochs": 1}
    if central:
        own = {"name": "actor_critic", "central_value": True, "mlp": {"units": UNITS, "activation": "elu"}}
        config["central_value_config"] = {
            "learning_rate": 1e-3,
            "mini_epochs": 1,
            "minibatch_size": 16,
            "normalize_input": True,
            "network": own,
        }
    return {"algo": {"name": "a2c_continuous"}, "model": {"name": "continuous_a2c_logstd"}, "network": network,
            "config": config}  # fmt: skip


def our_agent(params: dict[str, Any], state: dict[str, torch.Tensor]) -> Agent:
    spaces = {name: SimpleNamespace(shape=(size,)) for name, size in
              (("observation_space", NUM_OBS), ("action_space", NUM_ACTIONS), ("state_space", NUM_STATES))}  # fmt: skip
    agent = Agent(SimpleNamespace(**spaces), TrainConfig.from_params(params), torch.device("cpu"))
    rl_games_checkpoint.check_fit(state, agent.state_dict())
    agent.load_state_dict(state)
    return agent


def through_a_file(content: dict[str, Any], folder: Path) -> dict[str, torch.Tensor]:
    torch.save(content, folder / "theirs.pth")
    return rl_games_checkpoint.convert(rl_games_checkpoint.read(folder / "theirs.pth"))


def assert_same_policy(agent: Agent, model: Callable[..., Any], central: Callable[..., Any] | None = None) -> None:
    """Compare means, deviations and values over an episode, recurrent states carried along."""
    torch.manual_seed(1)
    hidden, states = agent.initial_hidden(NUM_ENVS), {}
    for _ in range(STEPS):
        observation = {"obs": torch.randn(NUM_ENVS, NUM_OBS) * 3.0, "states": torch.randn(NUM_ENVS, NUM_STATES) * 3.0}
        mean, value = model(observation["obs"], states)
        if central is not None:
            _, value = central(observation["states"], {})
        with torch.no_grad():
            ours = agent.evaluate(observation, hidden)
        hidden = ours.hidden
        torch.testing.assert_close(ours.mean.clamp(-1.0, 1.0), mean.clamp(-1.0, 1.0), rtol=0.0, atol=1e-5)
        torch.testing.assert_close(ours.mean, mean, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(ours.value, value, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", NETWORKS)
def test_actions_and_values_agree_to_1e_5(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    separate, recurrent = NETWORKS[name]
    model = twin.Model(NUM_OBS, NUM_ACTIONS, UNITS, separate, recurrent)
    state = through_a_file(twin.checkpoint(model), tmp_path)
    agent = our_agent(our_params(separate, recurrent), state)
    assert_same_policy(agent, model)
    torch.testing.assert_close(agent.network.log_std, model.a2c_network.sigma)
    assert float(agent.obs_normalizer.count) == 1234.0  # training goes on with the statistics' own weight


def test_a_central_critic_gives_the_values_and_their_statistics(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = twin.Model(NUM_OBS, NUM_ACTIONS, UNITS, False, {})
    central = twin.Model(NUM_STATES, NUM_ACTIONS, UNITS, False, {})
    agent = our_agent(our_params(False, {}, central=True), through_a_file(twin.checkpoint(model, central), tmp_path))
    assert_same_policy(agent, model, central)


def test_names_of_compiled_and_older_versions_are_understood(tmp_path: Path) -> None:
    torch.manual_seed(0)
    separate, recurrent = NETWORKS["lstm_after_separate"]
    model = twin.Model(NUM_OBS, NUM_ACTIONS, UNITS, separate, recurrent)
    content = twin.checkpoint(model)
    compiled = {f"_orig_mod.{name}": value for name, value in content["model"].items()}
    older = {name.replace("rnn.rnn.", "rnn."): value for name, value in content["model"].items()}
    oldest = {name: value for name, value in older.items() if "mean_std" not in name}
    beside = {"running_mean_std": model.running_mean_std.state_dict(), "reward_mean_std":
              model.value_mean_std.state_dict()}  # fmt: skip
    variants = [
        {**content, **changes} for changes in ({"model": compiled}, {"model": older}, {"model": oldest, **beside})
    ]
    for variant in (*variants, {0: content}):
        state = through_a_file(variant, tmp_path)
        assert_same_policy(our_agent(our_params(separate, recurrent), state), model)


def test_a_best_reward_stored_as_a_numpy_number_needs_no_trust(tmp_path: Path) -> None:
    model = twin.Model(NUM_OBS, NUM_ACTIONS, UNITS, False, {})
    content = twin.checkpoint(model, last_mean_rewards=np.float32(12.5), env_state=None)
    torch.save(content, tmp_path / "new.pth")
    assert rl_games_checkpoint.read(tmp_path / "new.pth")["last_mean_rewards"] == 12.5


class Harmful:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("harm_was_done"),))


def test_other_python_objects_need_trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    content = twin.checkpoint(twin.Model(NUM_OBS, NUM_ACTIONS, UNITS, False, {}), env_state=Harmful())
    torch.save(content, "theirs.pth")
    with pytest.raises(UsageError, match="could run code when loaded; if you trust where it comes from, add trusted"):
        rl_games_checkpoint.read(Path("theirs.pth"))
    assert not Path("harm_was_done").exists()
    assert rl_games_checkpoint.read(Path("theirs.pth"), trusted=True)["epoch"] == 12


def test_layers_that_we_do_not_have_are_named(tmp_path: Path) -> None:
    content = twin.checkpoint(twin.Model(NUM_OBS, NUM_ACTIONS, UNITS, False, {}))
    content["model"]["a2c_network.actor_cnn.0.weight"] = torch.zeros(1)
    with pytest.raises(UsageError, match="has 'a2c_network.actor_cnn.0.weight': our networks have no such layer"):
        through_a_file(content, tmp_path)


# ---- the command line


@pytest.fixture
def their_file(tmp_path: Path, run_train: Callable[..., int]) -> Path:
    """Return a checkpoint for the task Fake (1 observation, 1 action), in the folder that the tests run in."""
    torch.manual_seed(0)
    torch.save(twin.checkpoint(twin.Model(1, 1, [8], False, {})), tmp_path / "theirs.pth")
    return tmp_path / "theirs.pth"


def run_export(*words: str) -> int:
    return export.main([*FLAGS, "from_rl_games=theirs.pth", "to=ours.pth", *words])


def test_the_written_checkpoint_plays_and_trains_on(
    their_file: Path, run_train: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_export("task=Fake") == 0
    out = capsys.readouterr().out
    assert "ours.pth: Fake after epoch 12, frame 3456" in out
    ours, theirs = torch.load("ours.pth", weights_only=True), torch.load(their_file)
    torch.testing.assert_close(
        ours["model"]["network.actor.mlp.0.weight"], theirs["model"]["a2c_network.actor_mlp.0.weight"]
    )
    assert ours["lr"] == pytest.approx(0.00021)
    assert play.main([*FLAGS, "checkpoint=ours.pth", "num_episodes=5"]) == 0
    assert "5 episodes: reward " in capsys.readouterr().out
    assert run_train("checkpoint=ours.pth", "max_iterations=14", "num_envs=8", "hydra.run.dir=run") == 0
    assert torch.load("run/nn/last.pth")["epoch"] == 14


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["task=Fakee"], "unknown task 'Fakee'"),
        (["task=Fake", "train.params.network.mlp.units=[8,8]"], "this config has network.actor.mlp.1.bias, which the"),
        (["task=Fake", "train.params.network.mlp.units=[4]"], "network.actor.mlp.0.bias is (8,) in the checkpoint, (4"),
        (["task=Fake", "train.params.network.separate=True"], "this config has network.critic.mlp.0.bias, which the"),
        (["task=Fake", "+train.params.config.normalize_value=False"], "the checkpoint has value_normalizer.count, wh"),
        (["task=Fake", "from_rl_games=none.pth"], "from_rl_games: no file"),
        (["task=Fake", "from_rl_games="], "from_rl_games= is missing"),
        (["task=Fake", "to=theirs.pth"], "theirs.pth' exists already"),
        (["task=Fake", "trusted=perhaps"], "trusted must be True or False"),
        ([], "task= is missing"),
    ],
)
def test_bad_input(
    words: list[str], message: str, their_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_export(*words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert [path.name for path in tmp_path.iterdir()] == ["theirs.pth"]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 half a file", pickle.dumps([1, 2], protocol=2)])
def test_other_files_are_refused_in_one_line(
    content: bytes, their_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    their_file.write_bytes(content)
    assert run_export("task=Fake") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "theirs.pth is " in line


def test_a_run_folder_tells_task_and_settings(
    their_file: Path, run_train: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_train("num_envs=8", "max_iterations=1", "hydra.run.dir=run", "task.env.episodeLength=7") == 0
    saved = OmegaConf.load("run/config.yaml")
    saved.train.algo = "rl_games"
    saved.train.params.config.gamma = 0.5
    OmegaConf.save(saved, "run/config.yaml")
    torch.save(torch.load(their_file), "run/nn/theirs.pth")
    assert export.main([*FLAGS, "from_rl_games=run/nn/theirs.pth", "to=ours.pth"]) == 0
    kept = torch.load("ours.pth", weights_only=True)["config"]
    assert (kept["task"]["env"]["episodeLength"], kept["train"]["params"]["config"]["gamma"]) == (7, 0.5)
    assert kept["train"].get("algo", "ppo") == "ppo"


def test_our_own_checkpoints_are_not_taken_for_theirs(
    their_file: Path, run_train: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_train("num_envs=8", "max_iterations=1", "hydra.run.dir=run") == 0
    assert export.main([*FLAGS, "from_rl_games=run/nn/last.pth", "to=ours.pth", "task=Fake"]) == 2
    assert "not a checkpoint of rl-games" in capsys.readouterr().err


def test_values_that_are_not_finite_are_not_written(
    their_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = torch.load(their_file)
    content["model"]["a2c_network.mu.weight"].fill_(torch.nan)
    torch.save(content, their_file)
    assert run_export("task=Fake") == 2
    assert "not finite" in capsys.readouterr().err
    assert not (tmp_path / "ours.pth").exists()


# ---- against rl-games itself


@pytest.mark.parametrize("name", NETWORKS)
def test_rl_games_own_model_agrees_to_1e_5(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rl_games", reason='rl-games is not installed: pip install -e ".[rl-games]"')
    from rl_games.algos_torch.model_builder import ModelBuilder

    torch.manual_seed(0)
    separate, recurrent = NETWORKS[name]
    params = our_params(separate, recurrent)
    theirs = copy.deepcopy(params)
    none = {"name": "default"}
    theirs["network"]["mlp"] |= {"initializer": none, "regularizer": {"name": "None"}}
    theirs["network"]["space"] = {"continuous": {"mu_activation": "None", "sigma_activation": "None", "mu_init": none,
                                                 "sigma_init": {"name": "const_initializer", "val": 0},
                                                 "fixed_sigma": True}}  # fmt: skip
    sizes = {"actions_num": NUM_ACTIONS, "input_shape": (NUM_OBS,), "num_seqs": NUM_ENVS, "value_size": 1}
    model = ModelBuilder().load(theirs).build({**sizes, "normalize_value": True, "normalize_input": True})
    model.running_mean_std(torch.randn(100, NUM_OBS) * 2.0 + 1.0)  # moves the statistics
    model.value_mean_std(torch.randn(100, 1) * 3.0 - 1.0)
    model.eval()
    agent = our_agent(params, through_a_file(twin.checkpoint(model), tmp_path))

    def act(observations: torch.Tensor, states: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
        states.setdefault("all", model.get_default_rnn_state())
        with torch.no_grad():
            result = model({"is_train": False, "obs": observations, "rnn_states": states["all"]})
        states["all"] = result["rnn_states"]
        return result["mus"], result["values"][:, 0]

    assert_same_policy(agent, act)
