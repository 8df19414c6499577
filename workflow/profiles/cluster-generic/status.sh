#!/bin/sh
# State of a Slurm job in the three words that Snakemake knows; scontrol needs no accounting database.
# A controller that does not answer says nothing of the job, which is taken to run on.
answer=$(scontrol --oneliner show job "$1" 2>&1)
state=$(echo "$answer" | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p')
case "$state" in
    COMPLETED) echo success ;;
    PENDING | CONFIGURING | RUNNING | SUSPENDED | COMPLETING | REQUEUED | RESIZING) echo running ;;
    "") case "$answer" in *"Invalid job id"*) echo failed ;; *) echo running ;; esac ;;
    *) echo failed ;;
esac
