"""A local web page that asks about pictures privately and shows what the server received of them: `sphynx app`."""
