"""The project's own package, called like one of gymscale's."""
