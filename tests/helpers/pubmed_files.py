"""Citations of PubMed as XML."""

DOCTYPE = (
    '<?xml version="1.0" encoding="utf-8"?><!DOCTYPE PubmedArticleSet PUBLIC '
    '"-//NLM//DTD PubMedArticle, 1st January 2019//EN" "https://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_190101.dtd">'
)


def citation(
    key,
    title="A title",
    abstract="<AbstractText>Some words.</AbstractText>",
    date="<Year>2005</Year>",
    mesh=(("Humans", "N"), ("Neoplasms", "Y")),
    version="1",
    revised="2010-01-02",
    issn="0027-8424",
    linking="",
):
    headings = "".join(
        f'<MeshHeading><DescriptorName UI="D1" MajorTopicYN="{major}">{name}</DescriptorName></MeshHeading>'
        for name, major in mesh
    )
    year, month, day = revised.split("-") if revised else ("", "", "")
    stamp = f"<DateRevised><Year>{year}</Year><Month>{month}</Month><Day>{day}</Day></DateRevised>" if revised else ""
    return (
        f'<PubmedArticle><MedlineCitation Status="MEDLINE"><PMID Version="{version}">{key}</PMID>{stamp}'
        f"<Article><Journal><ISSN>{issn}</ISSN><JournalIssue><PubDate>{date}</PubDate></JournalIssue></Journal>"
        f"<ArticleTitle>{title}</ArticleTitle><Abstract>{abstract}</Abstract></Article>"
        f"<MedlineJournalInfo><ISSNLinking>{linking}</ISSNLinking></MedlineJournalInfo>"
        f"<MeshHeadingList>{headings}</MeshHeadingList></MedlineCitation></PubmedArticle>"
    )


def document(*parts):
    return f"{DOCTYPE}<PubmedArticleSet>{''.join(parts)}</PubmedArticleSet>"
