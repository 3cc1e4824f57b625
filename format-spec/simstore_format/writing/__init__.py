"""A writer of stores: as short as possible, and correct. `folder.write_store` builds a store; each other module makes the bytes of one
kind of file. Where the pages leave a choice to the writer, it takes a simple one. It shares limits and formulas with the reader.
"""
