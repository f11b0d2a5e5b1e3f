# For the Astro CLI, which builds an Astro project's image from this file, packages.txt (Debian's
# packages) and requirements.txt. Without Astro nothing reads it. Never built here: see
# docs/reference/installations.md.
# The tag begins with the version of Airflow that requirements.txt has. Take the patch that has the
# same one; where there is none, take `apache-airflow==` out of requirements.txt, which would replace
# the runtime's.
FROM astrocrpublic.azurecr.io/runtime:3.3-1
