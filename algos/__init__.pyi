from .api import train_on as train_on
from .core.recipe import (
    Optim as Optim,
    Recipe as Recipe,
)
from .evaluation.evaluate import (
    EvalSet as EvalSet,
    Evaluation as Evaluation,
    evaluate_model as evaluate_model,
    evaluate_policy as evaluate_policy,
)
from .evaluation.lm_agent import TokenAgent as TokenAgent
from .evaluation.result import RunResult as RunResult
from .learner.learner import Learner as Learner
from .learner.settings import LearnerSettings as LearnerSettings
from .recipes import make_recipe as make_recipe
from .training.config import (
    Budget as Budget,
    EnvConfig as EnvConfig,
    EvalConfig as EvalConfig,
    TrainConfig as TrainConfig,
)
from .training.trainer import (
    Trainer as Trainer,
    train as train,
)
