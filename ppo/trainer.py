"""The training loop: rollout -> returns -> update -> schedule -> diagnose -> log -> save."""

from __future__ import annotations

import logging
import math
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ppo import checkpoint, sapg, schedule
from ppo.agent import Agent
from ppo.capo import ConsensusUpdate
from ppo.central_value import CentralValueUpdate
from ppo.checkpoint import CheckpointError
from ppo.collector import Collector
from ppo.config import CentralValueConfig, ConfigError, TrainConfig, minibatch_samples
from ppo.diagnostics import RateWatch
from ppo.distributed import World
from ppo.env import VectorEnv
from ppo.loggers import Logger, LoggerGroup
from ppo.normalize import standardize
from ppo.outer_loop import OuterLoop, outer_settings
from ppo.play import play
from ppo.rollout import Batch, RolloutBuffer, minibatch_sizes
from ppo.stagnation import StagnationDetector
from ppo.update import PolicyUpdate

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrainResult:
    """How training ended."""

    epochs: int
    """iterations of rollout and update since the run began, over all resumes"""
    frames: int
    """environment steps, over all environments"""
    reward_mean: float
    """raw return, mean of the last finished episodes; NaN if none finished"""
    stop_reason: str
    """`max_epochs`, `max_frames`, `score_to_win`, or what `request_stop` was given"""


class Trainer:
    """Trains an agent in a batch of environments; owns everything that a checkpoint holds."""

    def __init__(
        self,
        env: VectorEnv,
        config: TrainConfig,
        device: str,
        run_dir: Path | None,
        loggers: Sequence[Logger] = (),
        seed: int = 0,
        full_config: Mapping[str, Any] | None = None,
        world: World | None = None,
    ) -> None:
        """Build agent, optimiser and storage.

        Args:
            env: the environments; its tensors must live on `device`.
            config: the learner's settings.
            device: torch device of the learner.
            run_dir: checkpoints go to `run_dir/nn`; None writes nothing.
            loggers: sinks of the metrics.
            seed: seeds torch, for the initial weights and the sampled actions; another one in every process.
            full_config: plain-typed configuration of the run, stored in every checkpoint.
            world: the processes that learn together, with as many environments each; only the first writes.
        """
        if torch.device(env.device) != torch.device(device):
            raise ConfigError(f"the environment is on {env.device}, the learner on {device}")
        self.env = env
        self.config = config
        self.device = torch.device(device)
        self.world = world or World()
        self.run_dir = run_dir
        self.run_id = secrets.token_hex(4)
        self.full_config = dict(full_config or {})
        self.epoch = 0
        self.frame = 0
        self.wall_time = 0.0
        self.best_reward = -math.inf
        self.reward_mean = math.nan

        torch.manual_seed(seed)
        self.agent = Agent(env, config, self.device)
        self.world.broadcast_(list(self.agent.state_dict().values()))
        self.collector = Collector(env, self.agent, config, self.device, self.world)
        self._batch = env.num_envs * config.horizon_length
        self._frames_an_iteration = self._total_frames()
        rows = self._minibatch_rows(config)
        self.update = PolicyUpdate(self.agent, config, rows, self.device, self.world, self._frames_an_iteration)
        consensus = config.capo.enabled and config.capo.merge != "deeper"
        self.consensus = ConsensusUpdate(self.update, config.capo) if consensus else None
        self.central_update: CentralValueUpdate | None = None
        central = config.central_value_config
        if self.agent.central is not None and central is not None:
            rows = self._minibatch_rows(central)
            chunk = sapg.shuffled_rows(config, self.agent.num_blocks, self.agent.central.hidden_size)
            self.central_update = CentralValueUpdate(self.agent.central, central, rows, self.world, chunk)
        length = config.seq_length if self.agent.network.hidden_size else 1
        diagnostics = config.diagnostics
        self.outer_loop = (
            OuterLoop(self.agent, diagnostics, self._batch, length, self.world) if diagnostics.enabled else None
        )
        settings = outer_settings(config, env.num_envs, self.world.size)
        solved = config.score_to_win if diagnostics.solved is None else diagnostics.solved
        self._stagnation = StagnationDetector(diagnostics.window, settings, solved)
        adaptive = config.lr_schedule == "adaptive"
        self._rate_watch = RateWatch(config.min_lr, config.max_lr) if adaptive else None
        self._loggers = LoggerGroup(loggers if self.world.rank == 0 else ())
        self._saving = run_dir is not None
        self._stop_request: str | None = None
        self._saved_epoch = -1

    def _total_frames(self) -> int:
        """Environment steps an iteration over all processes, which must have the same number each."""
        total = int(self.world.sum([self._batch])[0])
        if total != self._batch * self.world.size:
            raise ConfigError("num_envs and horizon_length must be the same in every process")
        return total

    def _minibatch_rows(self, config: TrainConfig | CentralValueConfig) -> int:
        """Rows of a minibatch: samples, or sequences of a recurrent network."""
        samples = minibatch_samples(config, self.env.num_envs)
        return max(1, samples // self.config.seq_length) if config.network.rnn else samples

    # ---- the loop

    def train(self) -> TrainResult:
        """Train until a limit is reached or a stop is requested; saves `last.pth` at the end."""
        self.config.sapg.check(self.env.num_envs)
        self._saving = self.world.sum([float(self.run_dir is not None)])[0] > 0
        try:
            while (reason := self._stop_reason()) is None:
                start = time.perf_counter()
                self._apply_schedules()
                self.collector.collect()
                statistics = self._learn()
                self.epoch += 1
                self.frame += self._frames_an_iteration
                self._report(statistics, start)
                self._save_when_due()
            self._save_last()
            return TrainResult(self.epoch, self.frame, self.reward_mean, reason)
        finally:
            self._loggers.close()

    def request_stop(self, reason: str) -> None:
        """Ask the loop to finish the current iteration, save and return; safe to call from a signal handler."""
        self._stop_request = reason

    def _stop_reason(self) -> str | None:
        """Why to stop now, the same moment in all processes; None to go on."""
        reason = self._own_stop_reason()
        stopping = self.world.sum([float(reason is not None)])[0] > 0
        return reason or ("stop of another process" if stopping else None)

    def _own_stop_reason(self) -> str | None:
        config = self.config
        if self._stop_request is not None:
            return self._stop_request
        if self.reward_mean > config.score_to_win:
            return "score_to_win"
        if 0 <= config.max_epochs <= self.epoch:
            return "max_epochs"
        if 0 <= config.max_frames <= self.frame:
            return "max_frames"
        return None

    def _apply_schedules(self) -> None:
        """Set what falls along a line over the run; the KL-adaptive rate is the update's own affair."""
        config, central = self.config, self.config.central_value_config
        total, done = (config.max_epochs, self.epoch) if config.max_epochs > 0 else (config.max_frames, self.frame)
        if total <= 0:
            return
        progress = done / total
        if config.lr_schedule == "linear":
            self.update.optimizer.set_rate(schedule.linear_decay(config.learning_rate, config.min_lr, progress))
        if config.schedule_entropy:
            self.update.set_entropy_coef(schedule.linear_decay(config.entropy_coef, 0.0, progress))
        if central is not None and self.central_update is not None and central.lr_schedule == "linear":
            rate = schedule.linear_decay(central.learning_rate, config.min_lr, progress)
            self.central_update.optimizer.set_rate(rate)

    def _learn(self) -> dict[str, torch.Tensor]:
        """Run the policy's mini-epochs on what was collected, and measure what they did."""
        batch, statistics = self.learning_batch()
        update = self.consensus or self.update
        if self.outer_loop is None:
            return update.run(batch) | statistics
        self.outer_loop.begin(batch, self.collector.buffer)
        statistics |= update.run(batch)
        return statistics | self.outer_loop.end()

    def learning_batch(self) -> tuple[Batch, dict[str, torch.Tensor]]:
        """Normalise the targets and fit the central critic if there is one; returns the policy's batch."""
        agent = self.agent
        buffer, statistics = self._rollout()
        with torch.no_grad():
            returns = buffer.advantages + buffer.values
            values, returns = agent.normalize_targets(buffer.values, returns, self.world)
            advantages = buffer.advantages
            if self.config.normalize_advantage:
                advantages = standardize(advantages, self.world)
        if self.central_update is not None:
            hidden_size = self.central_update.critic.hidden_size
            statistics |= self.central_update.run(buffer.critic_batch(values, returns, hidden_size))
        return buffer.batch(values, advantages, returns, agent.network.hidden_size), statistics

    def _rollout(self) -> tuple[RolloutBuffer, dict[str, torch.Tensor]]:
        """The data to learn from: what was collected and, for SAPG's leader, a follower's part of it once more."""
        blocks = self.collector.blocks
        if blocks is None or not blocks.num_relabelled:
            return self.collector.buffer, {}
        follower = sapg.draw_follower(blocks, self.world)
        number = torch.full((), float(follower), device=self.device)
        return sapg.add_relabelled(self.collector, follower), {"sapg/follower": number}

    # ---- reporting

    def _report(self, statistics: dict[str, torch.Tensor], start: float) -> None:
        """Read the iteration's tensors (the one synchronisation) and send the metrics to the loggers."""
        episodes = self.collector.episodes.summary(self.world)
        values = torch.stack([v.float() for v in statistics.values()]).tolist()
        step_seconds, rollout_seconds = self.collector.step_watch.pop(), self.collector.rollout_watch.pop()
        seconds = time.perf_counter() - start
        self.wall_time += seconds
        self.reward_mean = episodes["reward_mean"]
        frames, rate = self._frames_an_iteration, float(self.update.optimizer.rate)
        metrics = {
            "iteration": self.epoch,
            "frame": self.frame,
            "wall_time_s": self.wall_time,
            **episodes,
            "fps_step": frames / max(step_seconds, 1e-9),
            "fps_step_inference": frames / max(rollout_seconds, 1e-9),
            "fps_total": frames / seconds,
            "lr": rate,
            **dict(zip(statistics, values, strict=True)),
            **self.collector.infos.pop("episode"),
        }
        if self._rate_watch is not None and (warning := self._rate_watch.check(rate)):
            _log.warning(warning)
        if self.outer_loop is not None:
            if message := self._stagnation.check(metrics):
                _log.warning(message)
            metrics["outer/stagnant"] = float(self._stagnation.stagnant)
        if metrics["skipped_updates"]:
            _log.warning("%d updates skipped: loss or gradient not finite", metrics["skipped_updates"])
        self._loggers.log(metrics, self.frame)

    # ---- checkpoints

    def _save_when_due(self) -> None:
        """Best and periodic checkpoints; the best one holds no environment state, so it is no boundary."""
        if not self._saving:
            return
        config = self.config
        improved = self.reward_mean > self.best_reward and self.epoch >= config.save_best_after
        if improved:
            self.best_reward = self.reward_mean
            self.save("best.pth", with_env=False)
        if config.save_frequency > 0 and self.epoch % config.save_frequency == 0:
            self._save_last(f"ep_{self.epoch}.pth")
            if config.keep_last is not None and self.run_dir is not None:
                checkpoint.remove_old(self.run_dir / "nn", config.keep_last)

    def _save_last(self, *others: str) -> None:
        """Write `last.pth` (and the same under other names) unless this iteration's is there already."""
        if self._saving and self._saved_epoch != self.epoch:
            self.save(*others, "last.pth")
            self._saved_epoch = self.epoch

    def save(self, *names: str | Path, with_env: bool = True) -> bool:
        """Write a checkpoint to files in `run_dir/nn`, or to absolute paths; returns whether all were written.

        With the environment's state a checkpoint is a boundary: the state is written back into the running
        environment too, so that this run and one resumed from the file go on alike. A model with a non-finite
        value is never written, and a failing disk is reported, not raised. Every process must call this, since each
        contributes its environments' state; the first one writes.
        """
        if not checkpoint.all_finite(self.agent.state_dict()):
            _log.error("checkpoint not written: the model holds non-finite values; the last good one stays")
            return False
        try:
            content = self._content(with_env)
            for name in names if self.world.rank == 0 else ():
                checkpoint.write((self.run_dir or Path()) / "nn" / name, content)
        except CheckpointError as error:
            _log.error("%s", error)
            return False
        return True

    def _content(self, with_env: bool) -> dict[str, Any]:
        env_state = None
        if with_env:
            env_state = self.env.get_state()
            self.env.set_state(env_state)
        own = {"env_state": env_state, "collector": self.collector.state_dict(), "rng": _rng_state()}
        processes = self.world.gather_objects(own)
        return {
            **own,
            "other_processes": processes[1:],
            "epoch": self.epoch,
            "frame": self.frame,
            "wall_time_s": self.wall_time,
            "best_reward": self.best_reward,
            "reward_mean": self.reward_mean,
            "model": self.agent.state_dict(),
            "optimizer": self.update.optimizer.state_dict(),
            "central_optimizer": self.central_update.optimizer.state_dict() if self.central_update else None,
            "lr": float(self.update.optimizer.rate),
            "ewma": self.update.proximal.state_dict() if self.update.proximal else None,
            "stagnation": self._stagnation.state_dict(),
            "env_signature": self.env.signature(),
            "config": self.full_config,
            "run_id": self.run_id,
        }

    def restore(self, path: str | Path, load_optimizer: bool = True) -> None:
        """Continue from a checkpoint; without `load_optimizer` take only the model (weights and normalisers).

        Raises:
            CheckpointError: if the file is unusable or of another task.
        """
        content = checkpoint.read(path)
        checkpoint.check_signature(content["env_signature"], self.env.signature())
        sapg.check_fit(content["model"], self.agent.state_dict())
        try:
            self.agent.load_state_dict(content["model"])
            if self.update.proximal is not None:
                self.update.proximal.reset()
            if load_optimizer:
                self._continue_from(content)
        except (RuntimeError, KeyError, ValueError) as error:
            raise CheckpointError(f"{path}: does not fit these settings: {' '.join(str(error).split())}") from error

    def _continue_from(self, content: dict[str, Any]) -> None:
        self.epoch, self.frame = content["epoch"], content["frame"]
        self.wall_time, self.run_id = content["wall_time_s"], content["run_id"]
        self.best_reward, self.reward_mean = content["best_reward"], content["reward_mean"]
        self.update.optimizer.load_state_dict(content["optimizer"])
        if self.update.proximal is not None:
            self.update.proximal.restore(content.get("ewma"))
        if self.central_update is not None:
            self.central_update.optimizer.load_state_dict(content["central_optimizer"])
        if "stagnation" in content:
            self._stagnation.load_state_dict(content["stagnation"])
        processes = [content, *content["other_processes"]]
        if len(processes) == self.world.size:
            own = processes[self.world.rank]
            self.collector.load_state_dict(own["collector"], own["env_state"])
            _set_rng_state(own["rng"])
        else:
            self.collector.load_state_dict(content["collector"], None)

    # ---- test mode

    def play(self, num_episodes: int, deterministic: bool = True) -> dict[str, float]:
        """Run the policy without learning; see `ppo.play.play`."""
        return play(self.agent, self.env, self.collector.to_env, num_episodes, deterministic)

    def describe(self) -> dict[str, Any]:
        """What the settings came to in each process, for printing at the start."""
        length = self.config.seq_length if self.config.network.rnn else 1
        blocks = self.collector.blocks
        relabelled = blocks.num_relabelled * self.config.horizon_length if blocks is not None else 0
        sizes = minibatch_sizes((self._batch + relabelled) // length, self.update.minibatch_size)
        return {
            "parameters": sum(p.numel() for p in self.agent.parameters()),
            "processes": self.world.size,
            "batch": self._batch,
            "blocks": blocks.count if blocks is not None else 1,
            "relabelled": relabelled,
            "minibatches": len(sizes),
            "minibatch_size": sizes[0] * length,
            "mini_epochs": self.update.mini_epochs,
        }


def _rng_state() -> dict[str, Any]:
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {"torch": torch.get_rng_state(), "cuda": cuda}


def _set_rng_state(state: dict[str, Any]) -> None:
    torch.set_rng_state(state["torch"])
    if state["cuda"] and len(state["cuda"]) == torch.cuda.device_count():  # pragma: needs cuda
        torch.cuda.set_rng_state_all(state["cuda"])
