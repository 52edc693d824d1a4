"""How to reach a pool. Plain data: it can be pickled and sent to workers."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from .errors import ConfigError

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where Kubernetes puts a pod's token, namespace and the authority of its API server."""


@dataclass(frozen=True)
class PoolConfig:
    """How to reach a pool. Only ``base_url`` is required; times are in seconds."""

    base_url: str
    """The pool in the router's API:
    ``https://host/v1alpha1/namespaces/NAMESPACE/inferencepools/NAME``."""

    token: str = field(default="", repr=False)
    """The bearer token for the router; empty: ``token_file``, or none."""
    token_file: str = ""
    """The file of that token, read again for each call since such tokens are replaced."""
    api_key: str = field(default="", repr=False)
    """The engines' api-key; empty: ``api_key_file``, or none."""
    api_key_file: str = ""
    """The file of that key, read again for each request."""
    ca_file: str = ""
    """The authorities that the router is trusted by; empty: the system's. The file is read again for
    each call, since authorities are replaced as well."""
    engine_ca_file: str = ""
    """The authorities that engines of https URLs are trusted by; empty: the system's. The file is read
    again for each request."""

    epoch: int = 0
    """The pool's epoch as the caller knows it; 0: each session asks when it begins, and stays in
    that epoch."""
    sender_generation: int = 0
    """The generation of the sender as which this process asks."""

    dial_timeout: float = 10.0
    """Bounds one connection attempt to an engine."""
    call_timeout: float = 15.0
    """Bounds one call to the router, beyond the time that it is asked to wait."""
    retry_for: float = 60.0
    """How long a call to the router is begun again while its answers are lost. With call_timeout, which the
    last of them may take, it must be less than half of the pool's leases.retentionSeconds, after which
    the router forgets."""
    release_grace: float = 10.0
    """How long a release may go on after its caller has gone."""
    attempts: int = 5
    """How many requests one generate may make while each ends NotSent."""
    max_reply_bytes: int = 256 << 20
    """Bounds an engine's reply; a longer one is cut and counts as Cancelled."""

    def __post_init__(self) -> None:
        url = urlsplit(self.base_url)
        if url.scheme not in ("http", "https"):
            raise ConfigError("base_url", "must begin with http:// or https://")
        if not url.hostname or url.username or url.query or url.fragment:
            raise ConfigError("base_url", "must be a host and a path, without user, query and fragment")
        for name in ("dial_timeout", "call_timeout", "retry_for", "release_grace", "attempts", "max_reply_bytes"):
            if getattr(self, name) <= 0:
                raise ConfigError(name, "must be above 0")
        for name in ("epoch", "sender_generation"):
            if getattr(self, name) < 0:
                raise ConfigError(name, "must not be negative")
        for name in ("token", "api_key"):
            if getattr(self, name) and getattr(self, name + "_file"):
                raise ConfigError(name, f"is given twice, as {name} and as {name}_file")

    @classmethod
    def of(cls, router_url: str, namespace: str, name: str, **options: object) -> PoolConfig:
        """The configuration of a pool by the names of its
        inferencepools.inference.berthmaster.io object."""
        url = f"{router_url.rstrip('/')}/v1alpha1/namespaces/{namespace}/inferencepools/{name}"
        return cls(base_url=url, **options)  # type: ignore[arg-type]  # the fields are checked

    @classmethod
    def in_cluster(cls, router_url: str, name: str, namespace: str = "", **options: object) -> PoolConfig:
        """The configuration inside of a pod: its service account's token, and its namespace unless
        another is named."""
        account = Path(SERVICE_ACCOUNT)
        if not namespace:
            try:
                namespace = (account / "namespace").read_text().strip()
            except OSError as err:
                raise ConfigError("namespace", "there is no service account to take it from") from err
        return cls.of(router_url, namespace, name, **{"token_file": str(account / "token"), **options})

    @classmethod
    def from_kubeconfig(
        cls, router_url: str, name: str, namespace: str = "", *, path: str = "", context: str = "", **options: object
    ) -> PoolConfig:
        """The configuration outside of a cluster: the token of the kubeconfig's user, and the context's
        namespace unless another is named. The router knows callers by their tokens only."""
        from .kube import KubeConfig

        kube = KubeConfig.from_file(path, context)
        if not kube.token and not kube.token_file:
            raise ConfigError("token", "the kubeconfig's user has none, and the router knows callers by nothing else")
        secret = {"token": kube.token, "token_file": "" if kube.token else kube.token_file}
        return cls.of(router_url, namespace or kube.namespace or "default", name, **{**secret, **options})

    def router_headers(self) -> dict[str, str]:
        return _bearer(self.token, self.token_file)

    def engine_headers(self) -> dict[str, str]:
        return _bearer(self.api_key, self.api_key_file)


def _bearer(secret: str, file: str) -> dict[str, str]:
    if not secret and file:
        secret = Path(file).read_text().strip()
        if not secret:
            raise ConfigError(file, "the file is empty")
    return {"Authorization": f"Bearer {secret}"} if secret else {}
