"""The numbers of elements of the parameters of two models, in order: what their training exchanges in each step."""


def resnet50():
    """161 tensors, 25.6 million numbers."""
    found = [64 * 3 * 49, 64, 64]
    channels = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            found += [channels * width, width, width, width * width * 9, width, width, width * 4 * width, 4 * width, 4 * width]
            if block == 0:
                found += [channels * 4 * width, 4 * width, 4 * width]
            channels = 4 * width
    return found + [2048 * 1000, 1000]


def gpt2():
    """GPT-2 small: 148 tensors, 124.4 million numbers."""
    width = 768
    block = [width, width, width * 3 * width, 3 * width, width * width, width,
             width, width, width * 4 * width, 4 * width, 4 * width * width, width]
    return [50257 * width, 1024 * width, *block * 12, width, width]


def gpt2_scaled():
    """GPT-2 at a third of its width and a quarter of its words: 148 tensors, 13.0 million numbers."""
    width = 256
    block = [width, width, width * 3 * width, 3 * width, width * width, width,
             width, width, width * 4 * width, 4 * width, 4 * width * width, width]
    return [12565 * width, 1024 * width, *block * 12, width, width]


def small():
    """161 tensors of 64 bytes, of which only the cost of each tensor is left."""
    return [16] * 161


SETS = {"ResNet-50": resnet50, "GPT-2": gpt2, "GPT-2, scaled": gpt2_scaled, "small": small}
