"""plumb.load: the same answers as transformers, and as the program in a shell."""

import json
import math
import os
import pathlib
import shutil
import subprocess

import numpy as np
import pytest
import torch

import plumb

PROGRAM = os.environ.get("PLUMB_PROGRAM") or shutil.which("plumb")
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="there is no program `plumb`")


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    folder = tmp_path_factory.mktemp("gpt2")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(["the cat sees a dog, and the dog sees the cat"], trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    wrapped = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>",
                                                   bos_token="<|endoftext|>")
    wrapped.save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=len(wrapped), n_positions=32, n_embd=16, n_layer=2, n_head=2, bos_token_id=0,
                                     eos_token_id=0, initializer_range=0.5)
    model = transformers.GPT2LMHeadModel(config).eval()
    model.save_pretrained(folder)
    return folder, wrapped, model


def test_a_model_of_transformers_goes_on_as_there(gpt2):
    folder, tokenizer, model = gpt2
    loaded = plumb.load(folder)
    prompts = ["the cat", "a dog sees\nthe cat"]
    found = loaded.generate(prompts, temperature=0, max_tokens=8, lines=0)
    for prompt, one in zip(prompts, found, strict=True):
        ids = torch.tensor([tokenizer.encode(prompt)])
        with torch.no_grad():
            going = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=8, do_sample=False, pad_token_id=0)
            scores = model(going).logits.log_softmax(-1)
        expected = going[0, ids.shape[1]:].tolist()
        assert one.ids == expected[:len(one.ids)] and one.text == tokenizer.decode(one.ids)
        assert one.finish == ("length" if len(one.ids) == 8 else "end")
        chosen = scores[0, ids.shape[1] - 1:-1].gather(1, going[0, ids.shape[1]:, None]).sum().item()
        assert one.log_probability == pytest.approx(chosen, abs=1e-3)
    sampled = loaded.generate("the cat", samples=3, max_tokens=8, seed=5)
    assert len(sampled) == 3 and sampled[0].text == loaded.generate("the cat", samples=3, max_tokens=8, seed=5)[0].text


def test_errors(gpt2, tmp_path):
    loaded = plumb.load(gpt2[0])
    with pytest.raises(plumb.Error, match="cannot translate"):
        loaded.translate(["the cat"])
    with pytest.raises(plumb.Error, match="texts are a list"):
        loaded.translate("the cat")
    with pytest.raises(plumb.Error, match="is not a directory"):
        plumb.load(tmp_path / "nothing")
    with pytest.raises(plumb.Error, match="temperature"):
        loaded.generate("the cat", temperature=-1)
    with pytest.raises(plumb.Error, match="has no token"):
        loaded.loss([""])


def test_without_the_program(gpt2, monkeypatch):
    package = pathlib.Path(plumb.__file__).parent
    if (package / "program").exists():
        pytest.skip("the package has the program")
    monkeypatch.delenv("PLUMB_PROGRAM", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(plumb.Error, match="no program `plumb`.*\n.*PLUMB_PROGRAM"):
        plumb.load(gpt2[0])


def test_the_loss_of_texts_is_that_of_transformers(gpt2):
    folder, tokenizer, model = gpt2
    texts, total, count = ["the cat sees a dog", "a dog, and " * 20], 0.0, 0
    for text in texts:
        ids = [0, *tokenizer.encode(text)]  # after <|endoftext|>; then windows of all positions, after the token before each
        for begin in range(0, len(ids) - 1, 32):
            scored = len(ids[begin + 1:begin + 33])
            window = torch.tensor([ids[max(0, begin + scored - 32):begin + scored + 1]])
            with torch.no_grad():
                scores = model(window[:, :-1]).logits.log_softmax(-1)[0, -scored:]
            total -= scores.gather(1, window[0, -scored:, None]).sum().item()
            count += scored
    assert count > 64 + 5
    assert plumb.load(folder).loss(texts) == pytest.approx(total / count, rel=1e-5)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """Runs the program in a folder, and gives what it prints."""
    folder = tmp_path_factory.mktemp("program")

    def run(*arguments, **options):
        return subprocess.run([PROGRAM, *arguments], cwd=folder, capture_output=True, text=True, check=True, **options).stdout

    run.folder = folder
    return run


SMALL = [part for one in ("model.d_model=16", "model.heads=2", "train.steps=10", "train.batch_tokens=256", "train.validate_every=5")
         for part in ("--set", one)]


def last_valid_loss(run):
    points = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [point["metrics"]["valid_loss"] for point in points if "valid_loss" in point.get("metrics", {})][-1]


def test_a_run_translates_as_the_program_says(program):
    program("data", "synthesize", "--out", "data", "--pairs", "600", "--vocabulary", "300")
    program("train", "--data", "data", "--out", "run", *SMALL)
    texts = ["das Haus", "der Mann sieht das Haus"]
    expected = program("translate", "run", "--beam", "2", input="\n".join(texts) + "\n").splitlines()
    loaded = plumb.load(program.folder / "run")
    assert loaded.translate(texts, beam=2) == expected
    checkpoint = max((program.folder / "run" / "checkpoints").iterdir())
    assert plumb.load(checkpoint, data=program.folder / "data").translate(texts[:1], beam=2) == expected[:1]
    assert loaded.loss() == pytest.approx(last_valid_loss(program.folder / "run"), rel=1e-6)
    with pytest.raises(plumb.Error, match="was not trained to classify"):
        loaded.classify(texts)
    with pytest.raises(plumb.Error, match="nothing"):
        loaded.loss(split="nothing")


def test_the_loss_of_texts_is_that_of_the_program(program, gpt2):
    texts = ["the cat sees a dog", "a dog, and " * 20]
    (program.folder / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    found = json.loads(program("evaluate", str(gpt2[0]), "--tasks", "texts.jsonl", "--json", "-"))
    bits = found["tasks"]["texts"]["metrics"]["bits_per_byte"]["value"]
    tokens = sum(len(gpt2[1].encode(text)) for text in texts)
    expected = bits * math.log(2) * sum(len(text.encode()) for text in texts) / tokens
    assert plumb.load(gpt2[0]).loss(texts) == pytest.approx(expected, rel=1e-9)


def test_continuations_are_those_of_transformers(gpt2):
    folder, tokenizer, model = gpt2
    loaded = plumb.load(folder)
    pairs = [("the cat", " sees a dog"), ("the cat", " sees the cat"), ("", "a dog"), ("the dog sees a cat " * 8, "and")]
    for (context, continuation), (log_likelihood, greedy) in zip(pairs, loaded.log_likelihoods(pairs), strict=True):
        before = tokenizer.encode(context.rstrip()) or [0]  # <|endoftext|> if there is no context
        ids = (tokenizer.encode(context + continuation) if context else [0, *tokenizer.encode(continuation)])
        scored = len(ids) - len(before)
        window = torch.tensor([ids[-33:]])  # the last token is not read, and the model has 32 positions
        with torch.no_grad():
            scores = model(window[:, :-1]).logits.log_softmax(-1)[0, -scored:]
        chosen = scores.gather(1, window[0, -scored:, None]).sum().item()
        assert log_likelihood == pytest.approx(chosen, abs=1e-3)
        assert greedy == (scores.argmax(-1).tolist() == window[0, -scored:].tolist())
    prompts = ["the cat", "a dog sees", "the dog"]
    for stop in ("e", "no such text"):
        texts = loaded.complete(prompts=prompts, until=[stop], max_tokens=8)
        for prompt, text in zip(prompts, texts, strict=True):
            ids = torch.tensor([tokenizer.encode(prompt)])
            with torch.no_grad():
                whole = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=8, do_sample=False, pad_token_id=0)
            assert text == tokenizer.decode(whole[0, ids.shape[1]:], skip_special_tokens=True).split(stop)[0]
    with pytest.raises(plumb.Error, match="leave no room for a prompt"):
        loaded.complete(prompts=prompts, until=[], max_tokens=32)
    for ask in (lambda: loaded.complete("the cat", until=["e"], max_tokens=8), lambda: loaded.log_likelihood("the cat"),
                lambda: loaded.complete(prompts, until="end", max_tokens=8)):
        with pytest.raises(plumb.Error, match="texts are a list"):
            ask()


def test_a_run_loads_no_library_unless_it_is_named(program, tmp_path, monkeypatch):
    if shutil.which("cc") is None:
        pytest.skip("there is no compiler to make a library with")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    library, trace = tmp_path / "mine.so", tmp_path / "executed"
    (tmp_path / "mine.c").write_text(f'''#include <stdio.h>
__attribute__((constructor)) static void run(void) {{ fclose(fopen("{trace}", "w")); }}''')
    subprocess.run(["cc", "-shared", "-fPIC", tmp_path / "mine.c", "-o", library], check=True)
    program("data", "synthesize", "--out", "data-2", "--pairs", "600", "--vocabulary", "300")
    program("train", "--data", "data-2", "--out", "run-2", *SMALL)
    configuration = program.folder / "run-2" / "config.toml"
    lines = configuration.read_text().splitlines()[1:-1]  # the others are about their checksum
    configuration.write_text("\n".join([f'load = ["{library}"]', *lines, ""]))
    with pytest.raises(plumb.Error, match=f"{library}.*\n.*libraries="):
        plumb.load(program.folder / "run-2").translate(["das Haus"])
    assert not trace.exists()
    assert len(plumb.load(program.folder / "run-2", libraries=[library]).translate(["das Haus"])) == 1
    assert trace.exists()


@pytest.fixture(scope="module")
def classifier(program):
    lines = [f"{label}\t{words} {word}\n" for word in "one two three four five six seven eight".split()
             for label, words in (("bad", "the dog runs"), ("good", "a cat sees"), ("neither", "nobody is"))]
    (program.folder / "labels.tsv").write_text("".join(lines * 4))
    program("data", "labels", "--train", "labels.tsv", "--valid", "labels.tsv", "--vocabulary", "60", "--out", "labels")
    program("train", "--data", "labels", "--out", "classifier", *SMALL)
    return program.folder / "classifier"


def test_a_run_classifies_as_the_program_says(program, classifier):
    texts = ["a cat runs", "nobody is nine", "the dog"]
    expected = json.loads(program("classify", "classifier", "--json", "-", input="\n".join(texts) + "\n"))
    loaded = plumb.load(classifier)
    found = loaded.classify(texts)
    assert list(found[0].probabilities) == expected["labels"] and len(expected["labels"]) == 3
    for one, other in zip(found, expected["examples"], strict=True):
        assert one.label == other["label"] and one.probability == pytest.approx(other["probability"], rel=1e-6)
        assert list(one.probabilities.values()) == pytest.approx(other["probabilities"], rel=1e-6)
    assert found[0].probabilities != found[1].probabilities
    pair, single = loaded.classify([("a cat", "runs"), "a cat runs"])
    assert pair.probabilities != found[0].probabilities and single.probabilities == pytest.approx(found[0].probabilities)
    with pytest.raises(plumb.Error, match="has a tab"):
        loaded.classify([("a\tcat", "runs")])
    assert loaded.loss() == pytest.approx(last_valid_loss(classifier), rel=1e-6)
    with pytest.raises(plumb.Error, match="no language model|cannot"):
        loaded.loss(texts)


def test_a_run_embeds_as_the_program_says(program, classifier, gpt2):
    texts = ["a cat runs", "nobody is nine", "the dog"]
    loaded = plumb.load(classifier)
    for arguments, options in (([], {}), (["--pooling", "mean", "--normalize", "--max-tokens", "3"],
                                          {"pooling": "mean", "normalize": True, "max_tokens": 3})):
        expected = json.loads(program("embed", "classifier", *arguments, "--json", "-", input="\n".join(texts) + "\n"))
        found = loaded.embed(texts, **options)
        assert found.shape == (3, 16) and found.dtype == np.float32
        assert np.abs(found - np.array(expected["vectors"])).max() < 1e-6
    assert np.abs(np.linalg.norm(found, axis=1) - 1).max() < 1e-6
    with pytest.raises(plumb.Error, match="only 32 positions"):
        plumb.load(gpt2[0]).embed(texts, max_tokens=33)
    with pytest.raises(plumb.Error, match="texts are a list"):
        loaded.embed("a cat")
