"""Debian packages that an image has, as dpkg wrote it down there."""

import re
from dataclasses import dataclass

from packageurl import PackageURL

from release.command import ReleaseError

STATUS = "var/lib/dpkg/status"
"""A paragraph a package, also of some that were taken away (dpkg-query(1), "Package status")."""
OS_RELEASE = "usr/lib/os-release"
"""Says which distribution it is, of which version (os-release(5))."""

FIELD = re.compile(r"^([A-Za-z-]+): *(.*)$", re.MULTILINE)
VALUE = re.compile(r"""^([A-Z_]+)=["']?([^"'\n]*)["']?$""", re.MULTILINE)


@dataclass(frozen=True)
class DebianPackage:
    """One that is installed."""

    name: str
    version: str
    architecture: str
    vendor: str
    distribution: str
    """The vendor's name and version, as `debian-12`."""

    @property
    def url(self) -> PackageURL:
        """How others name it (package-url/purl-spec, type deb)."""
        qualifiers = {"arch": self.architecture, "distro": self.distribution}
        return PackageURL("deb", self.vendor, self.name, self.version, qualifiers)


def installed(status: str, os_release: str) -> list[DebianPackage]:
    """What is installed by the texts of STATUS and OS_RELEASE, in the order of STATUS; nothing where that is empty.

    Raises ReleaseError for what dpkg does not write, and where nobody says of which distribution the packages are.
    """
    of = dict(VALUE.findall(os_release))
    found = []
    for paragraph in filter(None, map(str.strip, status.split("\n\n"))):
        fields = dict(FIELD.findall(paragraph))
        if not fields.get("Status", "").endswith(" installed"):
            continue
        try:
            name, version, architecture = (fields[key] for key in ("Package", "Version", "Architecture"))
        except KeyError as error:
            raise ReleaseError(f"the image's {STATUS} has a package without {error}: look at its base") from error
        if not of.get("ID"):
            raise ReleaseError(f"the image has {STATUS}, and no ID in {OS_RELEASE} says whose: look at its base")
        distribution = "-".join(filter(None, (of["ID"], of.get("VERSION_ID"))))
        found.append(DebianPackage(name, version, architecture, of["ID"], distribution))
    return found
