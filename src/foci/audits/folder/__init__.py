"""The files of an audit folder, and how they are read and written."""
