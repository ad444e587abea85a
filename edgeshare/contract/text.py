"""What others say, fit to be shown."""


def in_one_line(text: str, most: int) -> str:
    """The first ``most`` characters of a text, each that would not show as one character as a space."""
    if text.isprintable():
        return text[:most]
    return "".join(character if character.isprintable() else " " for character in text[:most])
