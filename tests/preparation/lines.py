"""The pairs of the fixture `settings`."""

LINES = "".join(f"a dog runs {number}\tein Hund {number}\n" for number in range(60))
