"""The hand tasks on PhysX: poses, a block that stays on the hand, random actions, resume of a run."""

from pathlib import Path
from types import SimpleNamespace

from isaacgym import gymtorch  # isort: skip
import numpy as np
import pytest
import torch

from tasks import registry

REPO = Path(__file__).resolve().parents[2]
# Positions in the default pose, m.
PLACES = {
    "ShadowHand": {
        "robot0:palm": [0.0, -0.29, 0.49], "robot0:ffdistal": [-0.033, -0.455, 0.49],
        "robot0:mfdistal": [-0.011, -0.459, 0.49], "robot0:rfdistal": [0.011, -0.455, 0.49],
        "robot0:lfdistal": [0.034, -0.448, 0.49], "robot0:thdistal": [-0.083478, -0.368517, 0.499],
    },
    "AllegroHand": {
        "index_link_3": [-0.053162, -0.224198, 0.487943], "middle_link_3": [-0.000012, -0.226846, 0.487693],
        "ring_link_3": [0.053139, -0.224200, 0.487943], "thumb_link_3": [-0.123297, -0.034259, 0.492650],
    },
}  # fmt: skip
HANDS = list(PLACES)


@pytest.fixture
def build(load_cfg):
    """Build a task on PhysX; the one built before is closed, since PhysX is global to a process."""
    living = []

    def make(name, num_envs, seed=0, **env):
        while living:
            living.pop().close()
        torch.manual_seed(seed)
        np.random.seed(seed)
        cfg = load_cfg("task", name)
        cfg["env"].update(numEnvs=num_envs, **env)
        living.append(registry.get(name)(cfg, "cpu", "cpu"))
        return living[-1]

    yield make
    while living:
        living.pop().close()


def hold(task):
    """The action whose targets are the joints' zero positions, or the limits nearest to them."""
    lower, upper = task.target_limits
    return (-(upper + lower) / (upper - lower)).clamp(-1.0, 1.0).repeat(task.num_envs, 1)


def to_default_pose(task):
    """Joints at zero, every object at its start above the hand, unturned."""
    task.dof_state.zero_()
    task.dof_targets.zero_()
    task.actors[:, 1] = task.object_start
    task.gym.set_dof_state_tensor(task.sim, gymtorch.unwrap_tensor(task.dof_state))
    task.gym.set_actor_root_state_tensor(task.sim, gymtorch.unwrap_tensor(task.root_states))


@pytest.mark.parametrize("name", HANDS)
def test_bodies_in_the_default_pose(build, name):
    task = build(name, 1)
    bodies = gymtorch.wrap_tensor(task.gym.acquire_rigid_body_state_tensor(task.sim))
    task.gym.refresh_rigid_body_state_tensor(task.sim)
    names = task.gym.get_actor_rigid_body_names(task.envs[0], task.hand_handle)
    for body, place in PLACES[name].items():
        assert torch.allclose(bodies[names.index(body), :3], torch.tensor(place), atol=1e-5), body


@pytest.mark.parametrize(("name", "mass"), [("ShadowHand", 0.070875), ("AllegroHand", 0.10985)])
def test_F2_a_released_block_stays_on_the_hand(build, name, mass):
    task = build(name, 8)
    assert task.object_mass == pytest.approx(mass, rel=1e-5)
    task.step(hold(task))
    to_default_pose(task)
    for _ in range(round(1.0 / (task.dt * task.control_freq_inv))):
        _, _, done, _ = task.step(hold(task))
        assert done.sum() == 0
    height = task.actors[:, 1, 2]
    assert height.min() > 0.49
    assert task.actors[:, 1, 7:10].abs().max() < 0.05
    assert task.actors[:, 1, 10:].abs().max() < 0.5  # it may still rock
    assert task.actors[:, 2, :3].sub(task.goal_pose[:, :3] + task.goal_display).abs().max() < 1e-5


def random_actions(task, steps):
    """Random actions; every observation, state and reward must be finite."""
    generator = torch.Generator().manual_seed(3)
    for _ in range(steps):
        actions = torch.rand(task.num_envs, task.num_actions, generator=generator) * 2 - 1
        obs, reward, _, _ = task.step(actions)
        assert all(torch.isfinite(values).all() for values in (*obs.values(), reward))
    assert torch.isfinite(task.root_states).all()
    assert torch.isfinite(task.dof_state).all()
    assert task.nonfinite_count.sum() == 0


@pytest.mark.parametrize("name", HANDS)
def test_500_steps_of_random_actions_stay_finite(build, name):
    task = build(name, 4, asymmetric_observations=True)
    random_actions(task, 500)
    assert task.gym.get_frame_count(task.sim) == 500 * task.control_freq_inv


@pytest.mark.slow
@pytest.mark.parametrize("name", HANDS)
def test_500_steps_of_random_actions_over_1024_envs_stay_finite(build, name):
    random_actions(build(name, 1024), 500)


def test_the_variant_after_openai_randomises_pushes_and_stays_finite(build):
    task = build("ShadowHandOpenAI_FF", 4)
    random_actions(task, 5)
    task.push_probability[:] = 0.5
    random_actions(task, 25)
    gym, env = task.gym, task.envs[0]
    masses = [[b.mass for b in gym.get_actor_rigid_body_properties(e, task.object_handle)] for e in task.envs]
    assert len(np.unique(masses)) == 4
    assert ((np.array(masses) > 0.49 * 0.070875) & (np.array(masses) < 1.51 * 1.158 * 0.070875)).all()
    stiffness = gym.get_actor_dof_properties(env, task.hand_handle)["stiffness"]
    assert ((stiffness[:2] >= 0.75 * 5) & (stiffness[:2] <= 1.5 * 5)).all()
    assert task.object_forces.abs().max() > 0
    assert gym.get_frame_count(task.sim) == 90


def test_pushes_move_a_floating_object(build):
    task = build("ShadowHand", 2, forceScale=1.0)
    task.step(task.zero_actions())
    task.actors[:, 1, 2] = 3.0
    task.gym.set_actor_root_state_tensor(task.sim, gymtorch.unwrap_tensor(task.root_states))
    task.push_probability[:] = 0.0
    task.object_forces[:] = torch.tensor([[0.0, 0.0, 0.0], [0.1, 0.0, 0.0]])
    task.step(task.zero_actions())
    gained = torch.linalg.vector_norm(task.actors[1, 1, 7:10] - task.actors[0, 1, 7:10]).item()
    expected = 0.1 * task.force_decay / task.object_mass * task.dt
    assert gained == pytest.approx(expected, rel=0.02)


FILES = {
    "ShadowHand": ("shadow_hand/shadow_hand.xml", 0.05),
    "AllegroHand": ("allegro_hand/allegro_hand.urdf", 0.065),
}
"""Asset of the hand, edge of the block (m)."""


def release(task, steps, measure_every, measure):
    """Blocks released at their random starts over hands held in the default pose; returns who still holds one."""
    task.step(hold(task))
    to_default_pose(task)
    task._reset_objects(torch.arange(task.num_envs))
    task.gym.set_actor_root_state_tensor(task.sim, gymtorch.unwrap_tensor(task.root_states))
    held = torch.ones(task.num_envs, dtype=torch.bool)
    for step in range(steps):
        _, _, done, _ = task.step(hold(task))
        held &= done == 0
        if step % measure_every == 0:
            measure()
    return held & (task.actors[:, 1, 2] > 0.45)


def held_and_deep(build, name, num_envs, random_steps):
    """Share of blocks on the hand after 1 s, and depths (m) in which blocks lay inside the hand, random actions too."""
    from penetration import Penetration

    task = build(name, num_envs)
    file, edge = FILES[name]
    geometry = Penetration(task, REPO / "assets" / file, edge)
    depths = []
    seconds = round(1.0 / (task.dt * task.control_freq_inv))
    held = release(task, seconds, 5, lambda: depths.append(geometry.depth()))
    generator = torch.Generator().manual_seed(2)
    for step in range(random_steps):
        task.step(torch.rand(num_envs, task.num_actions, generator=generator) * 2 - 1)
        if step % 10 == 9:
            depths.append(geometry.depth())
    return held.float().mean().item(), torch.quantile(torch.cat(depths), 0.99).item()


@pytest.mark.parametrize("name", HANDS)
def test_blocks_stay_on_the_hand_and_outside_of_it(build, name):
    share, depth = held_and_deep(build, name, 12, 40)
    assert share >= 0.8
    assert depth < 0.005


@pytest.mark.slow
@pytest.mark.parametrize("name", HANDS)
def test_256_blocks_stay_on_the_hand_and_outside_of_it(build, name):
    share, depth = held_and_deep(build, name, 256, 150)
    print(f"{name}: {share:.3f} held after 1 s, depth {1000 * depth:.2f} mm at the 99th percentile")
    assert share >= 0.8
    assert depth < 0.005


def test_penetration_is_measured_by_geometry():
    from penetration import signed_distance, surface_points

    box = SimpleNamespace(kind="box", size=(1.0, 2.0, 3.0))
    capsule = SimpleNamespace(kind="capsule", size=(0.5, 1.0))
    cylinder = SimpleNamespace(kind="cylinder", size=(0.5, 1.0))
    points = torch.tensor([[0.0, 0, 0], [2.0, 0, 0], [2.0, 3.0, 0], [0.0, 0, 1.4], [0.0, 0, 4.0]])
    for shape, expected in (
        (box, [-1.0, 1.0, 2**0.5, -1.0, 1.0]),
        (capsule, [-0.5, 1.5, 13**0.5 - 0.5, -0.1, 2.5]),
        (cylinder, [-0.5, 1.5, 13**0.5 - 0.5, 0.4, 3.0]),
    ):
        assert signed_distance(shape, points).tolist() == pytest.approx(expected, abs=1e-6)
    cube = surface_points(0.05, 5)
    assert len(cube) == 5**3 - 3**3
    assert cube.abs().amax(dim=1).sub(0.025).abs().max() < 1e-7


def rollout(task, actions):
    rows = []
    for action in actions:
        obs, reward, done, _ = task.step(action)
        rows.append(torch.cat([obs["obs"], reward[:, None], done[:, None]], dim=1))
    return torch.stack(rows)


@pytest.mark.parametrize("name", [*HANDS, "ShadowHandOpenAI_FF"])
def test_F1_resume_in_a_new_simulation_restores_the_state(build, name):
    """All that is saved is there again, bit for bit.

    The steps after it are close, not equal: PhysX keeps the contact points of bodies that lie on each other from step
    to step, and a new simulation finds them anew. With randomisation the seed must be the same: it decides the scales.
    """
    task = build(name, 4, episodeLength=60)
    generator = torch.Generator().manual_seed(6)
    actions = torch.rand(41, 4, task.num_actions, generator=generator) * 2 - 1
    rollout(task, actions[:40])
    state, random_numbers = task.get_state(), torch.get_rng_state()
    task.set_state(task.get_state())
    rollout(task, actions[40:])
    expected = task.actors[:, 1, :3].clone()
    resumed = build(name, 4, seed=0 if name.endswith("_FF") else 77, episodeLength=60)
    resumed.set_state(state)
    again = resumed.get_state()
    for group in ("sim", "buffers"):
        for key, values in state[group].items():
            assert torch.equal(again[group][key], values), key
    torch.set_rng_state(random_numbers)
    rollout(resumed, actions[40:])
    assert (resumed.actors[:, 1, :3] - expected).abs().max() < 0.01  # m, of the object, one step on


@pytest.mark.parametrize("name", ["ShadowHandOpenAI_FF", "AllegroHandLSTM"])
def test_training_with_a_central_critic_or_an_lstm_and_play(name, tmp_path, monkeypatch, capsys):
    from gymscale.scripts import play, train

    monkeypatch.chdir(tmp_path)
    short = ["task.env.episodeLength=6", "task.env.resetTime=0"]
    assert train.main([f"task={name}", "num_envs=4", "max_iterations=2", "hydra.run.dir=run", *short]) == 0
    header, *rows = (tmp_path / "run" / "metrics.csv").read_text().splitlines()
    columns = dict(zip(header.split(","), rows[-1].split(","), strict=True))
    for metric in ("successes", "success_rate", "drops", "consecutive_successes", "rew_rotation"):
        assert np.isfinite(float(columns[f"episode/{metric}"]))
    assert float(columns["episode_length_mean"]) == pytest.approx(5.0, abs=0.5)
    capsys.readouterr()
    assert play.main(["checkpoint=run/nn/last.pth", "num_envs=3", "num_episodes=6"]) == 0
    out = capsys.readouterr().out
    assert "6 episodes: reward " in out
    assert all(f"\n{name} " in out for name in ("successes", "success_rate", "drops"))
