"""What stands behind the Isaac Gym API: asset readers, the scene, and PhysX."""
