"""The server of files, for all tests of downloads."""

from helpers.servers import serve

__all__ = ["serve"]
