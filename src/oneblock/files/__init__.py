"""Files and folders that are whole or absent; reading that says in one line what is wrong."""

from oneblock.files.durable import appearing, discard, publish, replacing, sweep, sync_folder, write_file
from oneblock.files.read import read_json

__all__ = ["appearing", "discard", "publish", "read_json", "replacing", "sweep", "sync_folder", "write_file"]
