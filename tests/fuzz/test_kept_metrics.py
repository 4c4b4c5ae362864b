"""Whatever bytes a reader of metrics that a tracker keeps meets, it hands back rows or says what is wrong."""

from collectors.training import mlflow, trainer_state
from tests.collectors import mlflow_files, test_trainer_state
from tests.fuzz.damage import checks_of

VALID = {trainer_state: [test_trainer_state.RUN.encode()], mlflow: [mlflow_files.small()]}
NAME = "trainer_state.json"  # of the input
NOISE = (b'{"global_step": 1, "log_history": [' + b'{"step": 1, "loss": ' * 50_000,)
test_the_undamaged_originals_are_known_and_read, test_damage, test_noise, test_every_cut = checks_of(
    VALID, NAME, NOISE, cuts=100, noises=100
)
