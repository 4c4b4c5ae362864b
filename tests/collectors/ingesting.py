"""What tests of ingest share: a small log, and whether a store is as empty as before."""

LOG = "Config param model_name: llama2-7b\n" + "".join(
    f"completed step: {n}, seconds: 1.{n:03}, TFLOP/s/device: 100.000, loss: 2.000\n" for n in range(10)
)


def nothing_stored(store):
    return store.ids() == [] and list((store.root / "partial").iterdir()) == []
