"""What tasks say of themselves: docs/tasks.md, slices, scales and weights against what the code does."""

import copy
from collections import defaultdict

import pytest
import torch

from gymscale.scripts import task_docs
from tasks import registry
from tasks.base.description import look_up, markdown, slices

NUM_ENVS = 64
NAMES = list({registry.get(name): name for name in reversed(registry.names())}.values())
"""One task of every class."""
KINDS = [(name, kind) for name in NAMES for kind in registry.get(name).description.observations]


def with_value(cfg, key, value):
    """A copy of a config with one number replaced."""
    changed = copy.deepcopy(cfg)
    *sections, last = key.split(".")
    node = changed
    for section in sections:
        node = node[section]
    node[last] = value
    return changed


def random_state(gym):
    """Physics that puts every quantity at a random value; the ground touches no base."""
    generator = torch.Generator().manual_seed(4)

    def normal(like, scale):
        return torch.randn(like.shape, generator=generator) * scale

    quat = torch.nn.functional.normalize(normal(gym.root[:, 3:7], 0.2) + torch.tensor([0.0, 0.0, 0.0, 1.0]), dim=1)
    gym.root.copy_(torch.cat([normal(gym.root[:, :3], 0.1) + torch.tensor([0, 0, 0.7]), quat,
                              normal(gym.root[:, 7:], 1.0)], dim=1))  # fmt: skip
    gym.dof.copy_(normal(gym.dof, 0.5))
    gym.sensor.copy_(normal(gym.sensor, 10.0))
    gym.dof_force.copy_(normal(gym.dof_force, 10.0))
    gym.contact.copy_(normal(gym.contact, 6.0))
    gym.contact[:, 0] = 0.0
    gym.body.copy_(normal(gym.body, 0.5))


@pytest.fixture
def one_step(make_task, fake_gym, load_cfg):
    """Observation (N, O) and reward terms of a task after one step from the same random state."""

    def run(name, cfg=None, kind="obs"):
        cfg = copy.deepcopy(cfg or quiet(load_cfg("task", name)))
        if kind != "obs":
            cfg["env"]["observationType"] = kind
        torch.manual_seed(1)
        fake_gym.physics = lambda gym: None
        task = make_task(name, cfg=cfg, numEnvs=NUM_ENVS)
        task.step(torch.zeros(NUM_ENVS, task.num_actions))
        task.reset_buf.zero_()
        task.episodes.rewards.sums.zero_()
        fake_gym.physics = random_state
        task.step(torch.rand(NUM_ENVS, task.num_actions) * 1.8 - 0.9)
        terms = task.episodes.rewards.sums[:-1]
        return task, task.obs_buf.clone(), dict(zip(task.episodes.rewards.names, terms.clone(), strict=True))

    return run


def quiet(cfg):
    """Without noise and terrain, which the stand-in for the simulator has no use for."""
    if "terrain" in cfg["env"]:
        cfg["env"]["terrain"]["terrainType"] = "plane"
        cfg["env"]["learn"]["addNoise"] = False
    if "successTolerance" in cfg["env"]:
        cfg["env"]["successTolerance"] = 1.0
    return cfg


def keys(numbers):
    return sorted({number.lstrip("-") for number in numbers if isinstance(number, str)})


def test_the_page_is_what_the_command_writes(tmp_path, monkeypatch, capsys):
    committed = task_docs.PAGE.read_text(encoding="utf-8")
    monkeypatch.setattr(task_docs, "PAGE", tmp_path / "docs" / "tasks.md")
    assert task_docs.main() == 0
    assert "tasks.md" in capsys.readouterr().out
    written = (tmp_path / "docs" / "tasks.md").read_text(encoding="utf-8")
    assert written == committed, "run python scripts/task_docs.py"


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_slices_cover_the_observation_and_its_parts(one_step, monkeypatch, name, kind):
    widths = {}
    cat = torch.cat

    def recording_cat(parts, dim=0, out=None):
        if out is not None:
            widths[out.shape[1]] = [part.shape[1] for part in parts]
        return cat(parts, dim=dim, out=out) if out is not None else cat(parts, dim=dim)

    monkeypatch.setattr(torch, "cat", recording_cat)
    task, obs, _ = one_step(name, kind=kind)
    described = list(slices(task.description.observations[kind]))
    covered = [index for start, end, _ in described for index in range(start, end)]
    assert covered == list(range(task.num_obs)) == list(range(obs.shape[1]))
    ends, described_ends = 0, {end for _, end, _ in described}
    for width in widths.get(task.num_obs, ()):
        ends += width
        assert ends in described_ends


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_scales_are_those_of_the_config(one_step, load_cfg, name, kind):
    cfg = quiet(load_cfg("task", name))
    task, plain, _ = one_step(name, kind=kind)
    parts = task.description.observations[kind]
    for key in keys(part.scale for part in parts):
        doubled = one_step(name, with_value(cfg, key, 2 * look_up(cfg, key)), kind)[1]
        for start, end, part in slices(parts):
            factor = 2.0 if part.scale == key else 1.0
            assert plain[:, start:end].abs().max() > 0
            assert torch.allclose(doubled[:, start:end], factor * plain[:, start:end]), (key, part)


@pytest.mark.parametrize("name", NAMES)
def test_reward_terms_are_those_that_are_logged_and_their_weights_those_of_the_config(one_step, load_cfg, name):
    cfg = quiet(load_cfg("task", name))
    described = {term.name: term.weight for term in registry.get(name).description.terms}
    assert set(one_step(name)[2]) == set(described)
    for key in keys(described.values()):
        once, twice = (one_step(name, with_value(cfg, key, value))[2] for value in (1.0, 2.0))
        for term, weight in described.items():
            factor = 2.0 if isinstance(weight, str) and weight.lstrip("-") == key else 1.0
            assert torch.allclose(twice[term], factor * once[term], rtol=1e-4), (key, term)
            if factor == 2.0 and term not in ("death", "air_time", "timeout"):
                assert once[term].abs().max() > 0, f"the state does not show {term}"


def test_a_page_resolves_keys_and_signs():
    description = registry.get("Cartpole").description
    page = markdown("Cartpole", description, {"env": {"maxEffort": 7.5, "resetDist": 2, "episodeLength": 9}})
    assert "x 7.5 N" in page
    assert "after 9 steps" in page
    assert "| 2 | pole angle from upright | rad | joint | 1 |" in page
    shadow, cfg = registry.get("ShadowHand").description, {"env": defaultdict(float)}
    assert [f"Observation `{kind}`" in markdown("", shadow, cfg, ["full"]) for kind in ("full", "openai")] == [
        True,
        False,
    ]
    assert look_up({"a": {"b": 2}}, "-a.b") == -2.0
    with pytest.raises(KeyError):
        markdown("Cartpole", description, {"env": {}})
