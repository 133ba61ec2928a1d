"""What may be tuned, and in which range."""

from search_spaces.ranges import SPACES, Space

__all__ = ["SPACES", "Space"]
