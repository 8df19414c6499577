"""Make a rule for each table and figure in the registry, with the name of the target."""

# targets that are possible with the chosen datasets; a target without datasets is omitted if the user's corpus is the
# only chosen dataset
POSSIBLE = [
    target
    for target in targets.registry().values()
    if target.among(CONFIGURATION.chosen, CONFIGURATION)
    or (not target.datasets and set(CONFIGURATION.chosen) != {"mine"})
]


if workflow.is_main_process:
    for target in targets.registry().values():
        if target not in POSSIBLE and target.among(CONFIGURATION.asked, CONFIGURATION):
            logger.warning(
                f"{target.name} is left out: it needs one of {', '.join(target.datasets)}"
            )


def target_files(paper=None):
    """Return the file of each target that the report shows."""
    return [
        next(iter(target.outputs().values()))
        for target in POSSIBLE
        if paper in (None, target.paper)
    ]


def files_for(target, kind):
    """Return the input function of a target for its files of one kind."""

    def files(wildcards):
        try:
            return inputs.files_of(kind, CONFIGURATION, target.name)
        except ValueError as error:
            raise WorkflowError(str(error)) from None

    return files


def printed(target):
    """Return the table of printed numbers, or None. It is not an input, because its path depends on the checkout."""
    return own_part(f"workflow/paper/{target.printed}") if target.has_paper else None


def outputs_of(target):
    """Return the output files of a target; the report shows the first file with the caption of the target."""
    files = target.outputs()
    shown = next(iter(files))
    files[shown] = report(
        files[shown],
        caption="../report/target.rst",
        category=targets.PAPERS[target.paper],
        labels={"item": target.item, "shows": target.shows},
    )
    return files


for target in targets.registry().values():

    rule:
        name:
            target.name
        input:
            **{name: files_for(target, kind) for name, kind in target.inputs.items()},
            of_claims=target.corpora(CONFIGURATION),
        output:
            **outputs_of(target),
        log:
            f"results/logs/{target.paper}/{target.name}.log",
        conda:
            "../envs/report.yaml"
        resources:
            **takes(target.memory_mb),
        params:
            name=target.name,
            title=target.title,
            options=partial(
                lambda one, wildcards: one.options(CONFIGURATION, one.name), target
            ),
            sources=target.sources(CONFIGURATION),
            caption=partial(
                lambda one, wildcards: one.caption(
                    one.options(CONFIGURATION, one.name)
                ),
                target,
            ),
            paper=printed(target),
            code=code_digest(target.module, files=filter(None, [printed(target)])),
        message:
            "Making {params.name}: {params.title}"
        script:
            "../scripts/target.py"


def files_of_paper(paper, wildcards):
    if files := target_files(paper):
        return files
    raise WorkflowError(f"{paper} has no target on the datasets of this configuration")


for paper in targets.PAPERS:

    rule:
        name:
            paper
        input:
            partial(files_of_paper, paper),
