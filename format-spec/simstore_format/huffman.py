"""The code of a table: table.md, section "Code lengths".

A canonical Huffman code of at most 12 bits a word is given by the length of each symbol's word.
"""

MAX_CODE_LENGTH = 12


def code_words(lengths):
    """Returns {symbol: (length, word)}. A length of 0 means that the symbol has no word."""
    words = {}
    word = 0
    for length in range(1, MAX_CODE_LENGTH + 1):
        for symbol, other in enumerate(lengths):
            if other == length:
                words[symbol] = length, word
                word += 1
        word <<= 1
    return words


def is_code(lengths):
    """Whether the lengths make a complete code: the sum of 2^-length is 1. A single word has length 1."""
    used = [length for length in lengths if length]
    if any(length > MAX_CODE_LENGTH for length in used):
        return False
    filled = sum(2 ** (MAX_CODE_LENGTH - length) for length in used)
    return used == [1] or (len(used) > 1 and filled == 2**MAX_CODE_LENGTH)
