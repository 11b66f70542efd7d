// The source of targets that exist for their precompiled header.
