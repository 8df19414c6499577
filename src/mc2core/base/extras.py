"""Optional packages, and the extras of mc2core that install them."""

import importlib.util

_PACKAGES = {
    "sklearn": "scikit-learn",
    "sentence_transformers": "sentence-transformers",
}  # packages whose module has another name


class MissingPackage(ImportError):
    """A package is not installed. The message names the feature that needs the package, and how to install it."""


def lacking(module: str, extra: str, purpose: object) -> str | None:
    """Return the message of :class:`MissingPackage` for a top-level ``module``; None if the module is installed."""
    if importlib.util.find_spec(module) is not None:
        return None
    package = _PACKAGES.get(module, module)
    return f"{purpose} needs the package {package}, which is not installed: pip install 'mc2core[{extra}]'"


def require(module: str, extra: str, purpose: object) -> None:
    """Raise MissingPackage if ``module`` is not installed, without importing it."""
    if lack := lacking(module, extra, purpose):
        raise MissingPackage(lack)
