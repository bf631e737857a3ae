"""The Isaac Gym API on PhysX 5.

Importing the package alone is light: torch and the physics engine are loaded by its modules.
"""

__version__ = "0.1.0"
