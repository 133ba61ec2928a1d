"""The smallest good study, six lines long, for tests to spoil."""

GOOD = """\
study: small
dataset: digits
model: small_cnn
loss: ce
optimizer: {name: sgd, lr: 0.1}
epochs: 2
"""
FRAME = GOOD.replace("loss: ce\n", "")  # for cases to complete
