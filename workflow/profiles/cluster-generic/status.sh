#!/bin/sh
# State of a Slurm job in the three words that Snakemake knows; scontrol needs no accounting database.
state=$(scontrol --oneliner show job "$1" 2>/dev/null | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p')
case "$state" in
    COMPLETED) echo success ;;
    PENDING | CONFIGURING | RUNNING | SUSPENDED | COMPLETING | REQUEUED | RESIZING) echo running ;;
    *) echo failed ;;
esac
