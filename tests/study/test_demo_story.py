"""The demo tells the papers' story: computed, on the hundred classes where it is to be seen, with one seed."""

from analysis import runs
from study import load
from study.runner import Options, carry_out

LOSSES = "loss=[ce, mae, {name: mae, scale: {tau: 1.5}}]"


def test_mae_underfits_ce_overfits_and_scaled_mae_does_neither(home):
    outcome = carry_out(load("demo", ["dataset=digit_pairs", LOSSES, "seeds=1"]), Options())
    assert len(outcome.finished) == 6
    frame = runs("demo").set_index(["noise", "loss"])
    clean, noisy = frame.loc["none"], frame.loc["symmetric 0.4"]

    fit = clean["train_clean_accuracy"]
    assert fit["mae"] <= fit["ce"] - 10
    assert fit["mae scale 1.5"] >= fit["ce"] - 3

    assert noisy["train_corrupted_fit"]["ce"] > 60
    assert noisy["train_corrupted_fit"]["mae scale 1.5"] < 20
    assert noisy["test_accuracy_final"]["mae scale 1.5"] >= noisy["test_accuracy_final"]["ce"] + 15
    assert noisy["test_accuracy_best"]["ce"] > noisy["test_accuracy_final"]["ce"] + 3, "CE was better before it overfitted"
