#!/usr/bin/env python3
"""Perceptual hashes of pictures that are made, and of copies of them that differ: 64 bits each, for `near.py`.

    venv/bin/python benches/python/images.py HASHES.u64 [--pictures N]

A picture is smooth noise of three scales; its copies are a JPEG of low quality, another brightness, a smaller size, and a border
cut off. Hashes are those of `imagehash.phash`.
"""

import argparse
import io

import imagehash
import numpy as np
from PIL import Image, ImageEnhance

SIZE = 96


def picture(random):
    """Noise of some scales, one above the other."""
    layers = []
    for cells in (3, 6, 12):
        noise = Image.fromarray(random.integers(0, 256, (cells, cells, 3), dtype=np.uint8))
        layers.append(np.asarray(noise.resize((SIZE, SIZE), Image.Resampling.BICUBIC), dtype=np.float32))
    return Image.fromarray((np.mean(layers, axis=0)).astype(np.uint8))


def copies(image):
    file = io.BytesIO()
    image.save(file, "JPEG", quality=25)
    yield Image.open(file)
    yield ImageEnhance.Brightness(image).enhance(1.2)
    yield image.resize((SIZE // 2, SIZE // 2))
    yield image.crop((2, 2, SIZE - 2, SIZE - 2))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output")
    parser.add_argument("--pictures", type=int, default=10_000)
    arguments = parser.parse_args()
    random = np.random.default_rng(1)
    hashes, distances = [], []
    for _ in range(arguments.pictures):
        image = picture(random)
        original = int(str(imagehash.phash(image)), 16)
        made = [int(str(imagehash.phash(copy)), 16) for copy in copies(image)]
        distances += [(original ^ copy).bit_count() for copy in made]
        hashes += [original, *made]
    np.array(hashes, dtype="<u8").tofile(arguments.output)
    within = np.mean(np.array(distances) <= 10)
    print(f"{len(hashes):,} hashes, {len(set(hashes)):,} different; {within:.1%} of the copies within 10 bits of their picture")


if __name__ == "__main__":
    main()
