"""The hunt: random problems of many kinds against an oracle that shares no code with the package."""
