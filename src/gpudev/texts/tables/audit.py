"""What a verification of the audit log finds, and the details of entries that stand for several."""

from __future__ import annotations

from gpudev.texts.template import Text, Values


def _say_repeated(values: Values) -> str:
    times = "once more" if values["count"] == 1 else "{count} times more"
    return values.fill(f"And {times} within a minute, this the last. {{detail}}").rstrip()


TEXTS = {
    # details of entries, which are stored as words, with times in UTC
    "audit_extension": Text("Of {username}, by {length:duration}."),
    "audit_keep": Text("Of {username}, for {hours:g} hours. {reason}"),
    "audit_repeated": Text(_say_repeated),
    "audit_login_failed_often": Text("Failed too often."),
    # findings
    "audit_entry_added": Text(
        "Entry {entry} was added later: it says {at}, and seal {seal}, made at {sealed_at}, came without it."
    ),
    "audit_entry_missing": Text("Entry {entry} is missing."),
    "audit_entry_changed": Text("Entry {entry} was changed after it was sealed."),
    "audit_seal_missing": Text("Seal {seal} is missing."),
    "audit_seals_missing": Text("Seals {first} to {last} are missing."),
    "audit_seal_changed": Text(
        "Seal {seal}, over entries {first} to {last}, was changed: it was made over {entries} entries, "
        "and {found} are under it."
    ),
    "audit_chain_broken": Text("Seal {seal} does not follow seal {previous}."),
    "audit_chain_broken_at_start": Text("Seal {seal} does not follow the beginning of the log."),
    "audit_anchor_missing": Text("Seal {seal} is missing: the log was cut off, or made anew."),
    "audit_anchor_changed": Text("Seal {seal} has another hash than the one noted: the chain was made anew."),
}
