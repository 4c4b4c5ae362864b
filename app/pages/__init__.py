"""Pages that are no question's own: one record each, listed once, in the order of the menu."""

from app.menu import Page
from app.pages.alerts import ALERTS
from app.pages.capture import CAPTURE
from app.pages.checkpoint_planner import CHECKPOINT_PLANNER
from app.pages.compare import COMPARE
from app.pages.cost_planner import COST_PLANNER
from app.pages.definitions import DEFINITIONS
from app.pages.facts import FACTS
from app.pages.fleet import FLEET
from app.pages.goodput_planner import GOODPUT_PLANNER
from app.pages.history import HISTORY
from app.pages.library import LIBRARY
from app.pages.models import MODELS
from app.pages.people import PEOPLE
from app.pages.promises import PROMISES
from app.pages.published import PUBLISHED
from app.pages.query import QUERY
from app.pages.scaling import SCALING_PAGE
from app.pages.serving_cases import SERVING_CASES
from app.pages.serving_planner import SERVING_PLANNER
from app.pages.several import SEVERAL
from app.pages.storage import STORAGE_PAGE
from app.pages.topology import TOPOLOGY
from app.pages.training_planner import TRAINING_PLANNER
from app.pages.you import YOU
from app.questions.compiled import COMPILED

PAGES: tuple[Page, ...] = (
    LIBRARY,
    FLEET,
    CAPTURE,
    TOPOLOGY,
    COMPILED,
    TRAINING_PLANNER,
    COST_PLANNER,
    GOODPUT_PLANNER,
    SCALING_PAGE,
    STORAGE_PAGE,
    CHECKPOINT_PLANNER,
    PUBLISHED,
    SERVING_PLANNER,
    SERVING_CASES,
    MODELS,
    PROMISES,
    ALERTS,
    DEFINITIONS,
    COMPARE,
    SEVERAL,
    HISTORY,
    FACTS,
    QUERY,
    YOU,
    PEOPLE,
)
