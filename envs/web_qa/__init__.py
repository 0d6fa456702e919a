"""WebQA: questions that are answered by searching a site or the web and reading its pages."""
