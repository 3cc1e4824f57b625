#!/usr/bin/env python3
"""Writes 64-bit perceptual hashes of generated pictures and of modified copies, for `near.py`.

    venv/bin/python benches/python/images.py HASHES.u64 [--pictures N]

A picture is smooth noise of three scales. It has four copies: a JPEG of low quality, one with another brightness, a smaller one, and one
without its border. `imagehash.phash` makes the hashes.
"""

import argparse
import io

import imagehash
import numpy as np
from PIL import Image, ImageEnhance

SIDE = 96


def make_picture(random):
    """Returns the mean of three layers of noise with different scales."""
    layers = []
    for cells in (3, 6, 12):
        noise = Image.fromarray(random.integers(0, 256, (cells, cells, 3), dtype=np.uint8))
        layers.append(np.asarray(noise.resize((SIDE, SIDE), Image.Resampling.BICUBIC), dtype=np.float32))
    return Image.fromarray((np.mean(layers, axis=0)).astype(np.uint8))


def make_copies(image):
    """Yields four modified copies of a picture."""
    file = io.BytesIO()
    image.save(file, "JPEG", quality=25)
    yield Image.open(file)
    yield ImageEnhance.Brightness(image).enhance(1.2)
    yield image.resize((SIDE // 2, SIDE // 2))
    yield image.crop((2, 2, SIDE - 2, SIDE - 2))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output")
    parser.add_argument("--pictures", type=int, default=10_000)
    arguments = parser.parse_args()
    random = np.random.default_rng(1)
    hashes, distances = [], []
    for _ in range(arguments.pictures):
        image = make_picture(random)
        original = int(str(imagehash.phash(image)), 16)
        copy_hashes = [int(str(imagehash.phash(copy)), 16) for copy in make_copies(image)]
        distances += [(original ^ copy).bit_count() for copy in copy_hashes]
        hashes += [original, *copy_hashes]
    np.array(hashes, dtype="<u8").tofile(arguments.output)
    within = np.mean(np.array(distances) <= 10)
    print(f"{len(hashes):,} hashes, {len(set(hashes)):,} different; {within:.1%} of the copies within 10 bits of their picture")


if __name__ == "__main__":
    main()
