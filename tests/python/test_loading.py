"""plumb.load: the same answers as transformers, and as the program."""

import shutil
import subprocess

import pytest
import torch

import plumb

pytest.importorskip("plumb._models", reason="the package was built without Plumb's library")


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
    assert loaded.kind == "decoder" and loaded.parameters == sum(p.numel() for p in model.parameters())
    prompts = ["the cat", "a dog sees"]
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


@pytest.mark.skipif(shutil.which("plumb") is None, reason="there is no program `plumb` to train a run with")
def test_a_run_translates_as_the_program_says(tmp_path):
    def program(*arguments, **options):
        return subprocess.run(["plumb", *arguments], cwd=tmp_path, capture_output=True, text=True, check=True, **options).stdout

    program("data", "synthesize", "--out", "data", "--pairs", "600", "--vocabulary", "300")
    settings = ("model.d_model=16", "model.heads=2", "train.steps=10", "train.batch_tokens=256")
    program("train", "--data", "data", "--out", "run", *(part for one in settings for part in ("--set", one)))
    texts = ["das Haus", "der Mann sieht das Haus"]
    expected = program("translate", "run", "--beam", "2", input="\n".join(texts) + "\n").splitlines()
    loaded = plumb.load(tmp_path / "run")
    assert loaded.kind == "encoder-decoder" and loaded.translate(texts, beam=2) == expected
    assert plumb.load(loaded.checkpoint, data=tmp_path / "data").translate(texts[:1], beam=2) == expected[:1]
