"""Build script of the gymscale distribution (tool settings live in pyproject.toml)."""

from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).resolve().parent

INSTALL_REQUIRES = [
    # The learner, every tensor of the API, and CUDA where there is one. No upper bound: users bring their own build.
    "torch>=2.4",
    # Structured arrays of the Isaac Gym API (properties, states) and asset arithmetic.
    "numpy>=1.26",
    # Rotations, convex hulls and interpolation in the asset readers and terrain tools.
    "scipy>=1.11",
    # PhysX 5 as a wheel. Pinned: its API moves between patch versions, one file of ours follows it.
    "ovphysx==0.7.0.74035321",
    # USD schemas that PhysX reads (articulations, tendons, contact reports); without them attributes are dropped.
    "physx-usd-schemas==25.11.2.72696984",
    # The second schema set the PhysX loader asks for.
    "newton-usd-schemas==0.6.0",
    # Authors the one USD stage a scene is loaded from. Pinned: stages are handed to native code.
    'usd-core==26.11; python_version >= "3.11"',
    'usd-core==26.8; python_version < "3.11"',  # the last release with a Python 3.10 wheel
    # MJCF and URDF parsing with line numbers in error messages.
    "lxml>=5",
    # Mesh files, mass properties, convex hulls.
    "trimesh>=4.4",
    # Observation and action spaces in the shape other learners expect.
    "gymnasium>=1.1",
    # The command line: config groups, overrides, multirun, launchers.
    "hydra-core>=1.3.2,<1.4",
    # The config tree under Hydra and the resolvers of the task files.
    "omegaconf>=2.3,<2.4",
    # Event files of every run.
    "tensorboard>=2.16",
    # The charts of the studies; TensorBoard needs it as well.
    "pillow>=10.1",
    # The live progress display.
    "rich>=13.7",
    # Optional tracking (wandb_activate=True); imported only when switched on.
    "wandb>=0.17",
]

EXTRAS_REQUIRE = {
    "test": [
        "pytest>=8",  # the test runner
        "pytest-cov>=5",  # the coverage floor in CI
        "ruff>=0.6",  # style, docstrings, annotations
        "mypy>=1.11",  # types
        "setuptools>=77",  # the test that builds the wheel
    ],
    "rl-games": ["rl-games==1.6.5"],  # the learner we compare with, and whose checkpoints we read
}


def namespaced(folder: str) -> list[str]:
    """Dotted names under the gymscale namespace for a checkout folder and its Python sub-packages."""
    return [f"gymscale.{folder}", *(f"gymscale.{folder}.{name}" for name in find_packages(str(HERE / folder)))]


setup(
    name="gymscale",
    version="0.1.0",
    description="The Isaac Gym API on PhysX 5, its locomotion and hand tasks, and a PPO that scales with num_envs",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="MIT",
    license_files=["LICENSE"],
    # usd-core and newton-usd-schemas have wheels for these versions only.
    python_requires=">=3.10,<3.14",
    packages=[
        *find_packages(str(HERE), include=["isaacgym", "isaacgym.*", "tasks", "tasks.*", "ppo", "ppo.*"]),
        *namespaced("scripts"),
        *namespaced("cfg"),
        *namespaced("assets"),
    ],
    # scripts/, cfg/ and assets/ lie beside each other in the checkout and under gymscale/ when installed.
    package_dir={"gymscale.scripts": "scripts", "gymscale.cfg": "cfg", "gymscale.assets": "assets"},
    package_data={
        "isaacgym": ["py.typed"],
        "gymscale.cfg": ["**/*.yaml"],
        "gymscale.assets": ["**/*.xml", "**/*.urdf", "**/*.obj", "**/*.stl", "**/*.md", "**/*.json"],
    },
    install_requires=INSTALL_REQUIRES,
    extras_require=EXTRAS_REQUIRE,
    entry_points={
        "console_scripts": [
            "gymscale-train=gymscale.scripts.train:main",
            "gymscale-play=gymscale.scripts.play:main",
            "gymscale-benchmark=gymscale.scripts.benchmark:main",
            "gymscale-export=gymscale.scripts.export:main",
        ],
        # How tasks.make reads the config files, which the tasks themselves know nothing of.
        "gymscale.task_settings": ["default=gymscale.scripts.task_settings:read"],
    },
    classifiers=[
        "Development Status :: 3 - Alpha",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3 :: Only",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
)
