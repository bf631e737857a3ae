"""A torch PPO learner for batched environments; it knows an environment only through `ppo.env`."""
