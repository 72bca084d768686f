"""What scripts/bench_tools.py times beside Plumb: a piece of work by the libraries that people use for it, in a process
of its own. `prepare` makes the tokenizers and models with random weights that both read."""
import argparse
import json
import math
import pathlib
import random
import sys

VOCABULARY = 16_000


def lines_of(path):
    return [line for line in path.read_text(encoding='utf-8').splitlines() if line.strip()]


def tokenizer(kind):
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    if kind == 'bpe':
        made = Tokenizer(models.BPE())
        made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    elif kind == 'wordpiece':
        made = Tokenizer(models.WordPiece(unk_token='[UNK]', max_input_chars_per_word=100))
        made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
        made.decoder = decoders.WordPiece()
        made.post_processor = processors.TemplateProcessing(
            single='[CLS] $A [SEP]', pair='[CLS] $A [SEP] $B:1 [SEP]:1', special_tokens=[('[CLS]', 2), ('[SEP]', 3)])
    else:
        made = Tokenizer(models.Unigram())
        made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    return made


def trainer(kind):
    from tokenizers import pre_tokenizers, trainers
    if kind == 'bpe':
        return trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=['<|endoftext|>'],
                                   initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    if kind == 'wordpiece':
        return trainers.WordPieceTrainer(vocab_size=VOCABULARY, show_progress=False,
                                         special_tokens=['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'])
    return trainers.UnigramTrainer(vocab_size=VOCABULARY, special_tokens=['<unk>', '</s>', '<pad>'], unk_token='<unk>',
                                   show_progress=False)


SPECIALS = {
    'bpe': dict(eos_token='<|endoftext|>', bos_token='<|endoftext|>', unk_token='<|endoftext|>'),
    'wordpiece': dict(pad_token='[PAD]', unk_token='[UNK]', cls_token='[CLS]', sep_token='[SEP]', mask_token='[MASK]'),
    'unigram': dict(unk_token='<unk>', eos_token='</s>', pad_token='<pad>'),
}
CLASSES = {'bpe': 'GPT2TokenizerFast', 'wordpiece': 'BertTokenizerFast', 'unigram': 'PreTrainedTokenizerFast'}


def prepare(folder, text):
    import torch
    import transformers
    transformers.logging.set_verbosity_error()
    sentences = lines_of(text)
    folder.mkdir(exist_ok=True)
    copies = math.ceil(50e6 / text.stat().st_size)
    (folder / 'large.txt').write_text('\n'.join(sentences * copies) + '\n', encoding='utf-8')
    fast = {}
    for kind in CLASSES:
        made = tokenizer(kind)
        made.train([str(text)], trainer(kind))
        fast[kind] = getattr(transformers, CLASSES[kind])(tokenizer_object=made, **SPECIALS[kind])
        fast[kind].save_pretrained(folder / kind)
    torch.manual_seed(1)
    models = {
        'llama': ('bpe', transformers.LlamaForCausalLM(transformers.LlamaConfig(
            vocab_size=len(fast['bpe']), hidden_size=512, intermediate_size=1408, num_hidden_layers=8,
            num_attention_heads=8, num_key_value_heads=4, max_position_embeddings=512, bos_token_id=0, eos_token_id=0))),
        'gpt2': ('bpe', transformers.GPT2LMHeadModel(transformers.GPT2Config(
            vocab_size=len(fast['bpe']), n_positions=512, n_embd=512, n_layer=8, n_head=8, bos_token_id=0,
            eos_token_id=0))),
        'minilm': ('wordpiece', transformers.BertModel(transformers.BertConfig(
            vocab_size=len(fast['wordpiece']), hidden_size=384, num_hidden_layers=6, num_attention_heads=12,
            intermediate_size=1536, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))),
    }
    for name, (kind, model) in models.items():
        model.save_pretrained(folder / name)
        fast[kind].save_pretrained(folder / name)
    chosen = random.Random(1)
    some = [' '.join(line.split()[:40]) for line in sentences if len(line.split()) > 10][:4_000]
    (folder / 'reference.txt').write_text('\n'.join(some) + '\n', encoding='utf-8')
    changed = []
    for line in some:
        words = [word for word in line.split() if chosen.random() > 0.1]
        for _ in range(3):
            at = chosen.randrange(max(len(words) - 1, 1))
            words[at:at + 2] = reversed(words[at:at + 2])
        changed.append(' '.join(words) or 'nothing')
    (folder / 'hypothesis.txt').write_text('\n'.join(changed) + '\n', encoding='utf-8')
    labeled = [f'{i % 2}\t{" ".join(line.split()[:32])}' for i, line in
               enumerate(line for line in sentences if len(line.split()) > 32)][:6_000]
    (folder / 'labels.tsv').write_text('\n'.join(labeled) + '\n', encoding='utf-8')


def tokenize(folder, kind, text):
    """Ids of all lines, in a file of two bytes each."""
    import numpy
    from tokenizers import Tokenizer
    made, sentences = Tokenizer.from_file(str(folder / kind / 'tokenizer.json')), lines_of(text)
    count = 0
    with open(folder / 'ids.bin', 'wb') as file:
        for begin in range(0, len(sentences), 10_000):
            some = made.encode_batch_fast(sentences[begin:begin + 10_000], add_special_tokens=False)
            ids = numpy.concatenate([numpy.asarray(each.ids, numpy.uint16) for each in some])
            count += len(ids)
            ids.tofile(file)
    return {'tokens': count}


def score(folder, confidence):
    import sacrebleu
    hypothesis, reference = (lines_of(folder / f'{name}.txt') for name in ('hypothesis', 'reference'))
    samples = dict(n_bootstrap=1000) if confidence else {}
    return {name: metric().corpus_score(hypothesis, [reference], **samples).score
            for name, metric in (('bleu', sacrebleu.BLEU), ('chrf', sacrebleu.CHRF))}


def adapted(model, modules, task):
    """With adapters, which are trained; so is the readout of a classifier."""
    import peft
    return peft.get_peft_model(model, peft.LoraConfig(r=8, lora_alpha=8, lora_dropout=0.0, target_modules=modules,
                                                      task_type=task))


def train(model, batches, steps):
    import torch
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4, fused=True)
    model.train()
    losses = []
    for _, batch in zip(range(steps), batches):
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
    if len(losses) < steps:
        sys.exit(f'the text is enough for {len(losses)} steps only')
    return {'loss': losses[0]}


def adapt_llama(folder, text, steps):
    """Blocks of 256 tokens, eight in a step."""
    import torch
    import transformers
    fast = transformers.AutoTokenizer.from_pretrained(folder / 'llama')
    model = adapted(transformers.LlamaForCausalLM.from_pretrained(folder / 'llama', attn_implementation='sdpa'),
                    ['q_proj', 'v_proj'], 'CAUSAL_LM')
    ids = torch.tensor([token for each in fast(lines_of(text), add_special_tokens=False)['input_ids'] for token in each])
    blocks = ids[:len(ids) // 2048 * 2048].view(-1, 8, 256)
    order = torch.randperm(len(blocks)).tolist()
    return train(model, ({'input_ids': blocks[i], 'labels': blocks[i]} for i in order), steps)


def adapt_minilm(folder, steps):
    """32 sentences in a step, with a new readout."""
    import torch
    import transformers
    transformers.logging.set_verbosity_error()
    fast = transformers.AutoTokenizer.from_pretrained(folder / 'minilm')
    model = adapted(transformers.BertForSequenceClassification.from_pretrained(folder / 'minilm', num_labels=2,
                                                                               attn_implementation='sdpa'),
                    ['query', 'value'], 'SEQ_CLS')
    rows = [line.split('\t') for line in lines_of(folder / 'labels.tsv')]
    random.Random(1).shuffle(rows)

    def batches():
        for begin in range(0, len(rows), 32):
            some = rows[begin:begin + 32]
            labels = torch.tensor([int(label) for label, _ in some])
            yield {**fast([text for _, text in some], padding=True, return_tensors='pt'), 'labels': labels}

    return train(model, batches(), steps)


def load(folder, batch_tokens):
    """An epoch of batches of blocks from the file of ids that `tokenize` wrote, shuffled. Without workers, which take
    longer to start than this takes."""
    import numpy
    import torch
    ids = numpy.memmap(folder / 'ids.bin', numpy.uint16, 'r')
    blocks = ids[:len(ids) // 256 * 256].reshape(-1, 256)

    class Blocks(torch.utils.data.Dataset):
        def __len__(self):
            return len(blocks)

        def __getitems__(self, indices):
            return torch.from_numpy(blocks[indices].astype(numpy.int64))

    loader = torch.utils.data.DataLoader(Blocks(), batch_size=batch_tokens // 256, shuffle=True, num_workers=0,
                                         collate_fn=lambda batch: {'inputs': batch[:, :-1], 'labels': batch[:, 1:]})
    return {'tokens': sum(batch['inputs'].numel() for batch in loader)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('work', choices=['prepare', 'tokenize', 'load', 'score', 'llama', 'minilm'])
    parser.add_argument('folder', type=pathlib.Path)
    parser.add_argument('--text', type=pathlib.Path)
    parser.add_argument('--kind')
    parser.add_argument('--confidence', action='store_true')
    parser.add_argument('--batch-tokens', type=int, default=4096)
    parser.add_argument('--steps', type=int, default=100)
    given = parser.parse_args()
    work = {
        'prepare': lambda: prepare(given.folder, given.text),
        'tokenize': lambda: tokenize(given.folder, given.kind, given.text),
        'load': lambda: load(given.folder, given.batch_tokens),
        'score': lambda: score(given.folder, given.confidence),
        'llama': lambda: adapt_llama(given.folder, given.text, given.steps),
        'minilm': lambda: adapt_minilm(given.folder, given.steps),
    }[given.work]
    json.dump(work(), sys.stdout)


if __name__ == '__main__':
    main()
