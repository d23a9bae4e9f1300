"""Read by every Python process of these tests at its start: worker processes of a server write their audit, too."""

import os
import sys

if "sphynx.service.worker" in sys.orig_argv and "SPHYNX_TEST_AUDIT" in os.environ:
    from tests.service.fault_process import audit

    audit(os.environ["SPHYNX_TEST_AUDIT"])
