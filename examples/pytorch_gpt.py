"""Trains a small GPT, character by character, on sentences that the script makes itself.

    hvdrun -np 2 python examples/pytorch_gpt.py

Shows gradient clipping (synchronize, clip, step) and, with --accumulate, several backward passes per step. Each
process makes text of its own from its own seed; all of it follows the same few rules, which the model has to find.
"""

import argparse
import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

import horovod.torch as hvd

NAMES = ['anna', 'ben', 'carla', 'david', 'emil', 'fay']
VERBS = ['sees', 'likes', 'paints', 'feeds', 'follows']
COLOURS = ['red', 'green', 'blue', 'grey']
ANIMALS = ['cat', 'dog', 'horse', 'hen']
ALPHABET = ' .abcdefghijklmnopqrstuvwxyz'


def parse_arguments():
    parser = argparse.ArgumentParser(description='A small GPT with horovod.torch')
    parser.add_argument('--steps', type=int, default=120)
    parser.add_argument('--batch-size', type=int, default=16, help='samples per backward pass, of each process')
    parser.add_argument('--accumulate', type=int, default=1, metavar='N', help='backward passes per step')
    parser.add_argument('--context', type=int, default=48, help='characters the model looks back')
    parser.add_argument('--layers', type=int, default=2)
    parser.add_argument('--width', type=int, default=64)
    parser.add_argument('--heads', type=int, default=4)
    parser.add_argument('--lr', type=float, default=3e-3)
    parser.add_argument('--clip', type=float, default=1.0, help='largest norm of the gradient')
    parser.add_argument('--seed', type=int, default=1)
    return parser.parse_args()


def make_text(seed, sentences):
    """`anna likes the red cat. ` and so on."""
    chooser = random.Random(seed)
    text = []
    for _ in range(sentences):
        words = (chooser.choice(NAMES), chooser.choice(VERBS), 'the', chooser.choice(COLOURS),
                 chooser.choice(ANIMALS))
        text.append(' '.join(words) + '. ')
    return torch.tensor([ALPHABET.index(character) for character in ''.join(text)])


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        query, key, value = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                             for part in self.attend(self.norm1(x)).split(width, dim=2))
        scores = query @ key.transpose(2, 3) / math.sqrt(width // self.heads)
        future = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        weights = scores.masked_fill(future, float('-inf')).softmax(dim=3)
        x = x + self.project((weights @ value).transpose(1, 2).reshape(batch, length, width))
        return x + self.feed(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, context, layers, width, heads):
        super().__init__()
        self.context = context
        self.tokens = nn.Embedding(len(ALPHABET), width)
        self.places = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        for table in (self.tokens, self.places):
            nn.init.normal_(table.weight, std=0.05)

    def forward(self, text):
        places = torch.arange(text.shape[1], device=text.device)
        x = self.norm(self.blocks(self.tokens(text) + self.places(places)))
        return x @ self.tokens.weight.t()  # the embedding serves both ends: one parameter, one gradient

    @torch.no_grad()
    def go_on(self, text, length):
        for _ in range(length):
            likely = self(text[:, -self.context:])[:, -1].argmax(dim=1, keepdim=True)
            text = torch.cat([text, likely], dim=1)
        return ''.join(ALPHABET[token] for token in text[0])


def main():
    args = parse_arguments()
    hvd.init()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)

    text = make_text(seed=1000 * args.seed + hvd.rank(), sentences=2000)
    chooser = torch.Generator().manual_seed(hvd.rank())
    model = GPT(args.context, args.layers, args.width, args.heads)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(),
                                         backward_passes_per_step=args.accumulate)

    for step in range(args.steps):
        optimizer.zero_grad()
        loss_sum = torch.zeros(())
        for _ in range(args.accumulate):
            starts = torch.randint(len(text) - args.context - 1, (args.batch_size,), generator=chooser)
            samples = torch.stack([text[start:start + args.context + 1] for start in starts])
            scores = model(samples[:, :-1])
            loss = F.cross_entropy(scores.reshape(-1, len(ALPHABET)), samples[:, 1:].reshape(-1)) / args.accumulate
            loss.backward()
            loss_sum += loss.detach()
        # The gradients are those of all processes by now.
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()
        if step % 20 == 0 or step == args.steps - 1:
            mean = float(hvd.allreduce(loss_sum, name='loss'))
            if hvd.rank() == 0:
                print('step {:4d}  loss {:.3f}'.format(step, mean), flush=True)

    if hvd.rank() == 0:
        print('it writes: ' + model.go_on(torch.tensor([[ALPHABET.index('b')]]), 60), flush=True)


if __name__ == '__main__':
    main()
