"""All peers."""

from peers import (
    cleanba_impala,
    cleanrl_ppo,
    monobeast,
    puffer_ppo,
    sample_factory_appo,
    torchrl_impala,
)

PEERS = {
    "cleanrl": cleanrl_ppo.PEER,
    "sample-factory": sample_factory_appo.PEER,
    "cleanba": cleanba_impala.PEER,
    "monobeast": monobeast.PEER,
    "puffer": puffer_ppo.PEER,
    "torchrl": torchrl_impala.PEER,
}
