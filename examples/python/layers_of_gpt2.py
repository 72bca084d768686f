"""What the modules of a Hugging Face model compute, and which gradients reach them, over re-initializations.
Takes half a minute at most.

The model is built from a small configuration; `AutoModelForCausalLM.from_pretrained` gives one with weights, to be measured
with `seeds=1`."""

import torch
import transformers

import plumb


def loss(model, tokens):
    return model(input_ids=tokens, labels=tokens).loss


def main():
    config = transformers.GPT2Config(vocab_size=500, n_positions=64, n_embd=64, n_layer=6, n_head=4, attn_pdrop=0, embd_pdrop=0,
                                     resid_pdrop=0)
    model = transformers.GPT2LMHeadModel(config)
    batches = torch.randint(500, (2, 8, 64)).unbind()

    found = plumb.probe(model, loss, batches, seeds=3)
    print(found)
    outputs = [row for row in found.rows if row.module.endswith("mlp.c_proj")]
    print("What each feed-forward sub-layer adds to the stream, RMS:",
          ", ".join(f"{float(row.output):.3g}" for row in outputs))


if __name__ == "__main__":
    main()
