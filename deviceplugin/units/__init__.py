"""Units, and which allocation holds which. Pure: begin with ``ledger``. It uses the contract alone."""
