"""The paper beside ours: its tables and figures as data, its experiments run again, and what became of them."""
