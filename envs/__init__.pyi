from .core.env import TextEnv as TextEnv
from .core.episode import (
    Call as Call,
    Episode as Episode,
    Info as Info,
    Outcome as Outcome,
    Policy as Policy,
    SessionSwitch as SessionSwitch,
)
from .core.errors import (
    EnvFault as EnvFault,
    TurngymError as TurngymError,
)
from .core.fork import fork as fork
from .core.registration import (
    EnvironmentSpec as EnvironmentSpec,
    all_ids as all_ids,
    find_environment as find_environment,
    register_environment as register_environment,
)
from .core.spaces import Utf8Text as Utf8Text
from .core.tasks import (
    Task as Task,
    TaskSource as TaskSource,
)
from .testing.check import (
    ConformanceError as ConformanceError,
    Report as Report,
    check_text_env as check_text_env,
)
from .wrappers.record import (
    RecordEpisodes as RecordEpisodes,
    Transcript as Transcript,
    read_transcripts as read_transcripts,
)
from .wrappers.replay import (
    ReplayReport as ReplayReport,
    replay as replay,
)
from .wrappers.vector import TextVectorEnv as TextVectorEnv
