"""Files and folders that are whole or absent."""

from oneblock.files.durable import discard, publish, replacing, sweep, sync_folder, write_file

__all__ = ["discard", "publish", "replacing", "sweep", "sync_folder", "write_file"]
