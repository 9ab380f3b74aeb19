"""Numbers of a block of text, at the speed of memory rather than of Python."""

from __future__ import annotations

import numpy as np

from thirdmoment._array.compile import compiled

# Ten to these powers is exact in float64, and so are integers below the limit: one product or
# quotient of both is then rounded once, as by a careful reader.
POWERS = 10.0 ** np.arange(23)


@compiled(writes=("values", "ends"))
def parse_numbers(
    text: np.ndarray, colons: bool, powers: np.ndarray, values: np.ndarray, ends: np.ndarray
) -> tuple[int, int, int]:
    """Numbers of ``text`` (bytes), and how many there are up to the end of each line that has any.

    With ``colons`` a line is number, column:value, column:value, ... Returns the count of numbers
    and of lines, and the place of the first byte that this simple reader does not understand, or
    -1.
    """
    count, lines, before, i, size = 0, 0, 0, 0, len(text)
    while i < size:
        c = text[i]
        if c == 10:
            if count > before:
                ends[lines] = count
                lines, before = lines + 1, count
            i += 1
            continue
        if c == 32 or c == 9 or c == 13:
            i += 1
            continue
        begin, negative = i, c == 45
        if c == 45 or c == 43:
            i += 1
        whole, digits, shift = np.int64(0), 0, 0
        while i < size and 48 <= text[i] <= 57:
            whole = whole * 10 + (text[i] - 48)
            digits, i = digits + 1, i + 1
        if i < size and text[i] == 46:
            i += 1
            while i < size and 48 <= text[i] <= 57:
                whole = whole * 10 + (text[i] - 48)
                digits, shift, i = digits + 1, shift - 1, i + 1
        if digits == 0 or digits > 18 or whole > 2**53:
            return count, lines, begin
        if i < size and (text[i] == 101 or text[i] == 69):
            i += 1
            down = i < size and text[i] == 45
            if i < size and (text[i] == 45 or text[i] == 43):
                i += 1
            power, seen = 0, 0
            while i < size and 48 <= text[i] <= 57 and seen < 4:
                power, seen, i = power * 10 + (text[i] - 48), seen + 1, i + 1
            if seen == 0:
                return count, lines, begin
            shift += -power if down else power
        if shift > 22 or shift < -22:
            return count, lines, begin
        c = text[i] if i < size else 10
        if colons and (count - before) % 2 == 1:  # a column ends at a colon, and its value follows
            if c != 58 or i + 1 >= size or text[i + 1] <= 32:
                return count, lines, begin
            i += 1
        elif c != 32 and c != 10 and c != 9 and c != 13:  # anything else at a blank or a line
            return count, lines, begin
        value = whole * powers[shift] if shift >= 0 else whole / powers[-shift]
        values[count] = -value if negative else value
        count += 1
    if count > before:
        ends[lines] = count
        lines += 1
    return count, lines, -1
