"""Units, which allocation holds which, and which free ones are told. Pure: begin with ``ledger``. It uses the contract
alone."""
