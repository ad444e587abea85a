"""Several beside each other on one device: who is let in (``rule``, where to begin), who is charged for what
(``charges``), whether it is worth while (``measurement``), who lies (``reports``), and the grants that come of it
(``openings``). It uses the rest of ``turns``; only ``arbiter`` uses it."""
